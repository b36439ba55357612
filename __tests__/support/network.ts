// Runs before every suite: nothing but this machine may be reached, and what nock replaced is put back.
import { afterAll, afterEach, beforeAll } from '@jest/globals'
import nock from 'nock'

beforeAll(() => {
  if (!nock.isActive()) nock.activate()
  nock.disableNetConnect()
  nock.enableNetConnect((host) => /^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(host))
})

afterEach(() => {
  nock.cleanAll()
})

afterAll(() => {
  nock.restore()
})
