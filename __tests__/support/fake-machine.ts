/** A machine for runs in virtual time: the real network and disk, which hold time while they are at work. */
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { ActionDependencies } from '../../src/action.ts'
import { type Disk, systemDisk } from '../../src/disk.ts'
import { type Network, type Storage, systemNetwork, systemStorage } from '../../src/network.ts'
import { FakeClock } from './fake-clock.ts'

export interface FakeMachine extends Disposable {
  readonly clock: FakeClock
  /** An empty directory, removed at the end. */
  readonly directory: string
  readonly dependencies: Pick<
    ActionDependencies,
    'clock' | 'network' | 'storage' | 'disk' | 'machine' | 'random'
  >
}

export function createFakeMachine({
  network = systemNetwork,
  storage = systemStorage,
  disk = systemDisk,
}: { network?: Network; storage?: Storage; disk?: Disk } = {}): FakeMachine {
  let openFiles = 0
  // Between the end of a body and the closing of its file, the checksums are read in another thread.
  let isChecking = false
  const clock = new FakeClock({ isBusy: () => openFiles > 0 || isChecking })
  const directory = fs.mkdtempSync(path.join(tmpdir(), 'machine-'))
  const workspace = path.join(directory, 'workspace')
  const temporary = path.join(directory, 'temporary')
  fs.mkdirSync(workspace)
  fs.mkdirSync(temporary)
  return {
    clock,
    directory,
    dependencies: {
      clock,
      random: () => 0.5,
      network: clock.holdDuring(network),
      storage: clock.holdDuring(async (...request) => {
        isChecking = false
        const reply = await storage(...request)
        return { ...reply, chunks: held(reply.chunks, reply.status < 300) }
      }),
      disk: {
        ...disk,
        create(name, mode) {
          const file = disk.create(name, mode)
          return {
            ...file,
            close() {
              isChecking = false
              file.close()
            },
          }
        },
        read(file) {
          openFiles += 1
          const stream = disk.read(file)
          stream.once('close', () => {
            openFiles -= 1
          })
          return stream
        },
      },
      machine: {
        platform: 'linux',
        workingDirectory: workspace,
        homeDirectory: '/home/nobody',
        temporaryDirectory: temporary,
      },
    },
    [Symbol.dispose]() {
      fs.rmSync(directory, { recursive: true })
    },
  }

  async function* held(
    chunks: AsyncIterable<Uint8Array>,
    isArchive: boolean,
  ): AsyncGenerator<Uint8Array> {
    const iterator = chunks[Symbol.asyncIterator]()
    const next = clock.holdDuring(() => iterator.next())
    try {
      for (let step = await next(); step.done !== true; step = await next()) yield step.value
      isChecking = isArchive
    } finally {
      await iterator.return?.()
    }
  }
}
