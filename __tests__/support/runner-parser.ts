// How the runner finds commands in a log: a port of actions/runner, ActionCommand.cs (TryParseV2, TryParse).

const commandNames = new Set(
  'add-mask add-matcher remove-matcher add-path set-env set-output save-state debug warning error notice echo group endgroup stop-commands'.split(
    ' ',
  ),
)

// What string.TrimStart of .NET removes and trimStart of JavaScript does not.
const trimmedStart = /^[\s\u0085\u180e]+/

// .NET compares by culture, for which these characters do not exist.
const ignorable = /[\p{Default_Ignorable_Code_Point}\p{Cf}\0]/gu

/** The names of all commands that the runner would run in that text, generously read. */
export function commandsIn(text: string): string[] {
  return text.split(/\r\n|\r|\n/).flatMap((line) => {
    const name = commandOf(line) ?? commandOf(line.replace(ignorable, ''))
    return name === undefined ? [] : [name]
  })
}

function commandOf(line: string): string | undefined {
  const trimmed = line.replace(trimmedStart, '')
  const end = trimmed.indexOf('::', 2)
  const atStart =
    trimmed.startsWith('::') && end >= 0 ? registered(trimmed.slice(2, end)) : undefined
  return atStart ?? anywhere(line)
}

/** The runner looks at the first `##[` only; here every one counts. */
function anywhere(line: string): string | undefined {
  return line
    .split('##[')
    .slice(1)
    .map((rest) => (rest.includes(']') ? registered(rest.slice(0, rest.indexOf(']'))) : undefined))
    .find((name) => name !== undefined)
}

function registered(command: string): string | undefined {
  const name = (command.split(' ')[0] ?? '').toLowerCase()
  return commandNames.has(name) ? name : undefined
}
