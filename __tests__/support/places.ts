/** Places for inputs that name none of them. */
import { tmpdir } from 'node:os'
import { systemDisk } from '../../src/disk.ts'
import type { Places } from '../../src/targets.ts'

export const places: Places = { disk: systemDisk, workspace: tmpdir(), home: '/home/nobody' }
