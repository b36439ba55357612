// Certificates for servers of the tests on this machine, made once with openssl. Nobody trusts them, they open
// nothing, and the key may be public: that is why it is here.
import { X509Certificate, createPrivateKey } from 'node:crypto'

const der = (base64: string) => Buffer.from(base64, 'base64')

function toPem(base64: string): string {
  return new X509Certificate(der(base64)).toString()
}

/** The key of both certificates. */
export const testKey = createPrivateKey({
  format: 'der',
  type: 'sec1',
  key: der(
    'MHcCAQEEIL6X0PbwbXyTCSbMyigq8wJvfm4i704k1Rp1ClTqcuJMoAoGCCqGSM49AwEHoUQDQgAE56KeRzew2VZnaBWV8G9t' +
      'SN+Fwe2UtckCyxDYZ4Dd+FCB2uwrBy2+V0Q5NSdl1Taivd36aJKBHpruCZ13p5gwbw==',
  ),
})
  .export({ format: 'pem', type: 'pkcs8' })
  .toString()

/** For localhost, api.example.com and 127.0.0.1, from 2020 to 2120; signed by itself. */
export const goodCertificate = toPem(
  'MIIBdTCCARugAwIBAgIBAjAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAl0ZXN0LW9ubHkwIBcNMjAwMTAxMDAwMDAwWhgPMjEy' +
    'MDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMMCXRlc3Qtb25seTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOeinkc3sNlWZ2gV' +
    'lfBvbUjfhcHtlLXJAssQ2GeA3fhQgdrsKwctvldEOTUnZdU2or3d+miSgR6a7gmdd6eYMG+jXDBaMCsGA1UdEQQkMCKCCWxv' +
    'Y2FsaG9zdIIPYXBpLmV4YW1wbGUuY29thwR/AAABMAwGA1UdEwQFMAMBAf8wHQYDVR0OBBYEFMM1/N767cUL6bHOErnFQCAb' +
    'h1l2MAoGCCqGSM49BAMCA0gAMEUCIFlFipZIwEEQWSI2vvUZr6FrqluksWNUzvjQaCySfe5ZAiEAiqpuveLE/YKTkb79RjBF' +
    'YOpWBt+LYlZpzSZw9Ll31rI=',
)

/** For the same names, but for the year 2000. */
export const expiredCertificate = toPem(
  'MIIBcjCCARigAwIBAgIBATAKBggqhkjOPQQDAjAcMRowGAYDVQQDDBF0ZXN0LW9ubHkgZXhwaXJlZDAeFw0wMDAxMDEwMDAw' +
    'MDBaFw0wMTAxMDEwMDAwMDBaMBwxGjAYBgNVBAMMEXRlc3Qtb25seSBleHBpcmVkMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD' +
    'QgAE56KeRzew2VZnaBWV8G9tSN+Fwe2UtckCyxDYZ4Dd+FCB2uwrBy2+V0Q5NSdl1Taivd36aJKBHpruCZ13p5gwb6NLMEkw' +
    'GgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAwGA1UdEwQFMAMBAf8wHQYDVR0OBBYEFMM1/N767cUL6bHOErnFQCAbh1l2' +
    'MAoGCCqGSM49BAMCA0gAMEUCIBM0CRoFb2z02o0N1/xbyN9Yd37SBmwb0MYmTJ9rvVPjAiEAgfMvDz1qrJAAy5sIjS6+pUcf' +
    '0vapG/aEXpTL5oPgC4M=',
)
