// Loaded with --import before every script: plain JavaScript, so that it can also speak on an old Node.
import process from 'node:process'

const major = Number(process.versions.node.split('.')[0])
if (major < 24) {
  console.error(
    `This project runs on Node 24, as the runner does; this is Node ${process.versions.node}.\n` +
      'On Linux x64 "npm ci" installs Node 24 beside the other packages and "npm run" uses it: run "npm ci" first.\n' +
      'Elsewhere, install the version in .node-version (for example with fnm, nvm or mise) and try again.',
  )
  process.exit(1)
}
