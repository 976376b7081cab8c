import { expect, test } from 'vitest';
import { type BannerFacts, banner, forBrowsers } from './banner.ts';

const facts: BannerFacts = {
  version: '1.0.0',
  url: 'http://localhost:8080',
  data_dir: '/home/ana/.local/share/svc',
  home: '/home/ana',
  join: { url: 'http://localhost:8080/join#t=abc', pin: '48291374', expires_at: '2026-01-02T10:42:00.000Z' },
  adopted: 0,
  warnings: [],
  ssh: null,
  colors: false,
};

test('the first start shows the link and the PIN in two groups', () => {
  const text = banner(facts);
  expect(text).toContain('svc 1.0.0   control plane   http://localhost:8080   data ~/.local/share/svc\n');
  expect(text).toContain('    Open   http://localhost:8080/join#t=abc\n');
  expect(text).toContain('    PIN    4829 1374\n');
  expect(text).not.toContain('\x1b');
});

test('later starts show no link, but running agents and warnings', () => {
  const text = banner({
    ...facts,
    join: null,
    adopted: 2,
    warnings: ['odd\x1b[2J'],
    ssh: { user: 'ana', host: 'box' },
  });
  expect(text).not.toContain('PIN');
  expect(text).toContain('2 running agents continue');
  expect(text).toContain('  ! odd\n');
  expect(text).toContain('ssh -L 8080:127.0.0.1:8080 ana@box');
});

test('the ssh command names the port, even if the URL omits it', () => {
  const ssh = { user: 'ana', host: 'box' };
  expect(banner({ ...facts, ssh, url: 'https://127.0.0.1' })).toContain('ssh -L 443:127.0.0.1:443 ana@box');
  expect(banner({ ...facts, ssh, url: 'http://127.0.0.1' })).toContain('ssh -L 80:127.0.0.1:80 ana@box');
});

test('shows the host name of this machine, because passkeys do not work with its address', () => {
  for (const [url, shown] of [
    ['http://127.0.0.1:8080/join#t=abc', 'http://localhost:8080/join#t=abc'],
    ['https://[::1]:8443', 'https://localhost:8443'],
    ['https://127.0.0.1', 'https://localhost'],
    ['https://svc.example/join#t=http://127.0.0.1', 'https://svc.example/join#t=http://127.0.0.1'],
    ['http://127.0.0.1.example', 'http://127.0.0.1.example'],
    ['http://10.0.0.5:8080', 'http://10.0.0.5:8080'],
  ] as const)
    expect(forBrowsers(url)).toBe(shown);
});
