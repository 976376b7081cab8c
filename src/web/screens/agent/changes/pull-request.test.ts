import { expect, test } from 'vitest';
import { pullRequestPage } from './pull-request.ts';

const page = (url: string, branch = 'fix') => pullRequestPage(url, branch)?.href ?? null;

test.each([
  ['https://github.com/shop/cart.git', 'https://github.com/shop/cart/compare/fix?expand=1'],
  ['ssh://github.com/shop/cart', 'https://github.com/shop/cart/compare/fix?expand=1'],
  ['ssh://github.com:22/shop/cart.git/', 'https://github.com/shop/cart/compare/fix?expand=1'],
  ['ssh://ssh.github.com:443/shop/cart.git', 'https://github.com/shop/cart/compare/fix?expand=1'],
  ['git://github.com/shop/cart.js.git', 'https://github.com/shop/cart.js/compare/fix?expand=1'],
  ['http://github.com/shop/cart', 'https://github.com/shop/cart/compare/fix?expand=1'],
  [
    'https://github.acme.example:8443/shop/cart',
    'https://github.acme.example:8443/shop/cart/compare/fix?expand=1',
  ],
  ['https://acme.ghe.com/shop/cart', 'https://acme.ghe.com/shop/cart/compare/fix?expand=1'],
  [
    'ssh://gitlab.com/shop/web/cart.git',
    'https://gitlab.com/shop/web/cart/-/merge_requests/new?merge_request%5Bsource_branch%5D=fix',
  ],
  [
    'ssh://gitlab.acme.example:2222/shop/cart.git',
    'https://gitlab.acme.example/shop/cart/-/merge_requests/new?merge_request%5Bsource_branch%5D=fix',
  ],
  ['ssh://bitbucket.org/shop/cart.git', 'https://bitbucket.org/shop/cart/pull-requests/new?source=fix'],
  ['https://codeberg.org/shop/cart', 'https://codeberg.org/shop/cart/compare/fix'],
  ['https://gitea.acme.example/shop/cart.git', 'https://gitea.acme.example/shop/cart/compare/fix'],
  ['ssh://forgejo.acme.example/shop/cart.git', 'https://forgejo.acme.example/shop/cart/compare/fix'],
])('the page for %s is %s', (url, href) => {
  expect(page(url)).toBe(href);
});

test.each([
  ['an unknown forge', 'https://git.example.com/shop/cart'],
  ['a host that ends like a forge', 'https://evilgithub.com/shop/cart'],
  ['a host that begins like github.com', 'https://github.com.evil.example/shop/cart'],
  ['a host that begins like gitlab.com', 'https://gitlab.com.evil.example/shop/cart'],
  ['another host of Bitbucket', 'https://bitbucket.acme.example/scm/shop/cart'],
  ['a port without TLS', 'http://gitlab.acme.example:8080/shop/cart'],
  ['a path without owner', 'https://github.com/cart'],
  ['a path with too many parts', 'https://github.com/shop/web/cart'],
  ['a path with two slashes', 'https://gitlab.com/shop//cart'],
  ['a path that is encoded', 'https://github.com/shop/%2e%2e%2fcart'],
  ['a path with only dots', 'https://github.com/shop/...'],
  ['nothing but a suffix', 'https://github.com/shop/.git'],
])('there is no page for %s', (_, url) => {
  expect(page(url)).toBeNull();
});

test('names the host, and what its forge calls the request', () => {
  expect(pullRequestPage('ssh://github.com/shop/cart', 'fix')).toMatchObject({
    host: 'github.com',
    noun: 'pull request',
  });
  expect(pullRequestPage('https://gitlab.acme.example:8443/shop/cart', 'fix')).toMatchObject({
    host: 'gitlab.acme.example:8443',
    noun: 'merge request',
  });
});

test('the name of a branch stays what it is', () => {
  const remotes = ['github.com', 'gitlab.com', 'bitbucket.org', 'codeberg.org'];
  for (const branch of ['svc/fix-agt_1', 'a#b', 'a%2fb', 'a&b=c', 'a+b', "it's", 'größe', '<b>', 'a;b']) {
    for (const host of remotes) {
      const url = new URL(page(`https://${host}/shop/cart`, branch)!);
      expect(url.hash, branch).toBe('');
      const query = url.searchParams.get('source') ?? url.searchParams.get('merge_request[source_branch]');
      expect(query ?? decodeURIComponent(url.pathname.replace('/shop/cart/compare/', ''))).toBe(branch);
    }
  }
  for (const branch of ['a:b', '\ud800', 'a\nb', ''])
    expect(page('https://github.com/shop/cart', branch)).toBeNull();
});
