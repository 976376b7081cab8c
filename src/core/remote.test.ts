import fc from 'fast-check';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { isBranchName, isRemoteName, remoteUrl } from './remote.ts';

test.each([
  ['https://github.com/shop/cart.git', 'https://github.com/shop/cart.git'],
  ['https://git.example.com:8443/shop/cart', 'https://git.example.com:8443/shop/cart'],
  ['http://git.example.com/shop/cart', 'http://git.example.com/shop/cart'],
  ['git://git.example.com/shop/cart.git', 'git://git.example.com/shop/cart.git'],
  ['ssh://git@GitHub.com:22/shop/cart.git', 'ssh://github.com:22/shop/cart.git'],
  ['git@github.com:shop/cart.git', 'ssh://github.com/shop/cart.git'],
  ['github.com:/shop/cart.git', 'ssh://github.com/shop/cart.git'],
  // For git, this is the path of a host.
  ['javascript:alert(1)', 'ssh://javascript/alert(1)'],
])('the URL of %s is %s', (address, url) => {
  expect(remoteUrl(address)).toBe(url);
});

test.each([
  'https://ann:s3cret@github.com/shop/cart.git',
  'https://s3cret@github.com/shop/cart.git',
  'https://ann:x@s3cret@github.com/shop/cart.git',
  'https://github.com/shop/cart.git?private_token=s3cret',
  'https://github.com/shop/cart.git#s3cret',
  'ssh://ann:s3cret@github.com/shop/cart.git',
  's3cret@github.com:shop/cart.git',
])('the URL of %s has no credentials', (address) => {
  expect(remoteUrl(address)).toMatch(/^(https|ssh):\/\/github\.com\/shop\/cart\.git$/);
});

test.each([
  ['a path', '/srv/git/cart.git'],
  ['a relative path', '../cart.git'],
  ['a file URL', 'file:///srv/git/cart.git'],
  ['a remote helper', 'ext::sh -c touch% x'],
  ['a remote helper without spaces', 'ext::x'],
  ['a script as a URL', 'javascript://github.com/%0aalert(1)'],
  ['no host', 'https:///'],
  ['no path', 'https://github.com/'],
  ['an option as host', 'ssh://-oProxyCommand=x/cart'],
  ['a password with a slash', 'https://ann:1/s3cret@github.com/shop/cart.git'],
  ['a password in the form with a colon', 'ann:s3cret@github.com:shop/cart.git'],
  ['a line break', 'https://github.com/shop/\ncart'],
  ['a tab in the scheme', 'java\tscript://github.com/x'],
  ['a bidirectional mark', 'https://github.com/shop/\u202etrac'],
  ['an invisible character', 'https://github.com/sh\u200bop/cart'],
  ['a space', 'https://github.com/shop/my cart'],
  ['half a character', 'https://github.com/shop/\ud800'],
  ['nothing', ''],
  ['too much', `https://github.com/${'x'.repeat(limits.remote_url_chars_max)}`],
  ['too much once it is encoded', `https://github.com/${'é'.repeat(limits.remote_url_chars_max / 4)}`],
])('an address with %s has no URL', (_, address) => {
  expect(remoteUrl(address)).toBeNull();
});

test('every URL is printable ASCII with a known scheme, and its own URL', () => {
  const part = fc.constantFrom(
    'https',
    'ssh',
    '://',
    ':',
    '@',
    '/',
    '..',
    'a',
    'B.c',
    '22',
    '%',
    '?',
    '#',
    '[',
    '\\',
    'é',
    '-',
  );
  fc.assert(
    fc.property(
      fc.array(fc.oneof(part, fc.string({ unit: 'binary', maxLength: 3 })), { maxLength: 12 }),
      (parts) => {
        const url = remoteUrl(parts.join(''));
        if (url === null) return;
        expect(url).toMatch(/^(https?|ssh|git):\/\/[\w.-]+(:\d+)?\/[\x21-\x7e]+$/);
        expect(url).not.toMatch(/[@?#]/);
        expect(remoteUrl(url)).toBe(url);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('a name that git could take for an option or an address is no name of a remote', () => {
  for (const name of ['origin', 'my_fork', 'team/fork', 'v1.2']) expect(isRemoteName(name), name).toBe(true);
  for (const name of [
    '',
    '-u',
    '--receive-pack=x',
    '.',
    '/srv/x',
    'a:b',
    'ext::x',
    'a b',
    "a'b",
    'a\n',
    'x'.repeat(201),
  ])
    expect(isRemoteName(name), name).toBe(false);
});

test('a name that git refuses is no name of a branch', () => {
  for (const name of ['main', 'svc/fix-agt_1', '-f', '+main', 'größe', '#1', "it's"])
    expect(isBranchName(name), name).toBe(true);
  for (const name of ['a:b', ':main', 'a b', 'a*', 'a\n', 'a\x7f', 'a~1', 'a^', 'a?', 'a[', 'a\\b', '\ud800'])
    expect(isBranchName(name), name).toBe(false);
});
