/** A self-signed certificate for `localhost` with a public key pair, only for tests of TLS listeners. */
export const testTls = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUJeMOh1yOJvFDwx0nc1iGSVs1baYwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAwMjkyMloYDzIxMjYxMDI4
MDAyOTIyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARhbyZrJRd8tJndM/CmFw/9jjpgQpKQxucI5cTu9ijcvgj0bb9rV7Mg
hnNNWnutSStBcrM2lKKzVzubFjWthPpxo28wbTAdBgNVHQ4EFgQUNuP/s0quxD43
uM1T/JQXZdMxYRkwHwYDVR0jBBgwFoAUNuP/s0quxD43uM1T/JQXZdMxYRkwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgW8fRR/FCu0O0JytG8l/ugrIYSY74+IWwixX1H5N6vM0CIApL
GLHnFdCqEJHW6Cgm6CzGAL5SkpOxE9mirYmnTdfh
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvVudGW3heeYHPjdS
aHWrVJM7q1NjVo8RKix3l/k7orehRANCAARhbyZrJRd8tJndM/CmFw/9jjpgQpKQ
xucI5cTu9ijcvgj0bb9rV7MghnNNWnutSStBcrM2lKKzVzubFjWthPpx
-----END PRIVATE KEY-----
`,
};
