/**
 * Loaded into each Node process under act. When a step fails, act leaves without reading its terminal to the end
 * (0.2.89, host_environment.go), and on a busy machine the last lines, which are the error, are lost. So a process
 * that fails stays a moment when it has said everything.
 */
import process from 'node:process'

const stayMs = 300

process.on('exit', (code) => {
  if (code !== 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stayMs)
})
