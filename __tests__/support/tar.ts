/** Archives built byte by byte, so that they can be as wrong as a test needs. */
import { gzipSync } from 'node:zlib'

export interface Entry {
  readonly name: string
  readonly body?: string | Uint8Array
  /** The type flag: `0` file, `5` directory, `1` hard link, `2` symbolic link … */
  readonly flag?: string
  /** What the header says, where it is not the length of the body. */
  readonly size?: number
  readonly link?: string
  /** Records of a PAX header before the entry. */
  readonly pax?: Readonly<Record<string, string>>
  /** A GNU long name before the entry. */
  readonly gnuLongName?: string
}

const blockBytes = 512

export function tar(entries: readonly Entry[], end = true): Buffer {
  return Buffer.concat([...entries.flatMap(toBlocks), Buffer.alloc(end ? 2 * blockBytes : 0)])
}

export function tgz(entries: readonly Entry[]): Buffer {
  return gzipSync(tar(entries))
}

function toBlocks(entry: Entry): Buffer[] {
  const { name, body = '', flag = '0', link = '', pax, gnuLongName } = entry
  const content = Buffer.from(body)
  return [
    ...(pax ? toBlocks({ name: 'PaxHeader', flag: 'x', body: paxRecords(pax) }) : []),
    ...(gnuLongName === undefined
      ? []
      : toBlocks({ name: '././@LongLink', flag: 'L', body: `${gnuLongName}\0` })),
    header(name, entry.size ?? content.length, flag, link),
    content,
    Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes),
  ]
}

function header(name: string, size: number, flag: string, link: string): Buffer {
  const block = Buffer.alloc(blockBytes)
  block.write(name, 0, 100)
  block.write('0000644\0', 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  block.write('00000000000\0', 136)
  block.write(flag, 156)
  block.write(link, 157, 100)
  block.write('ustar\0', 257)
  block.write('00', 263)
  block.write('        ', 148)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

function paxRecords(records: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(records).map(([key, value]) => {
      const rest = ` ${key}=${value}\n`
      const restBytes = Buffer.byteLength(rest)
      // The length counts its own digits.
      let total = restBytes + 1
      while (total !== restBytes + total.toString().length) total += 1
      return Buffer.from(`${total}${rest}`)
    }),
  )
}
