import { expect, test } from 'vitest';
import { describeDatabase, parseDatabaseUrl } from './database-url.ts';

const remote = {
  host: 'db.example.org',
  port: 5432,
  user: 'svc',
  password: 'secret',
  database: 'agents',
  tls: null,
};

test.each([
  ['postgres://svc:secret@db.example.org/agents', remote],
  ['postgresql://svc:secret@db.example.org:6000/agents', { ...remote, port: 6000 }],
  ['postgres://svc@db.example.org/agents', { ...remote, password: null }],
  ['postgres://db.example.org/agents', { ...remote, user: null, password: null }],
  [
    'postgres://s%40c:a%2Fb%25%23@db.example.org/my%20db',
    { ...remote, user: 's@c', password: 'a/b%#', database: 'my db' },
  ],
  ['postgres://svc:a@b@db.example.org/agents', { ...remote, password: 'a@b' }],
  ['postgres://svc:secret@[::1]:6000/agents', { ...remote, host: '::1', port: 6000 }],
  ['postgres:///agents', { ...remote, host: 'localhost', user: null, password: null }],
  [
    'postgres:///agents?host=/run/postgresql',
    { ...remote, host: '/run/postgresql', user: null, password: null },
  ],
  ['postgres://svc@/agents?host=%2Frun', { ...remote, host: '/run', password: null }],
  ['postgres://svc:secret@db.example.org/agents?sslmode=disable', { ...remote, tls: 'off' }],
  ['postgres://svc:secret@db.example.org/agents?sslmode=no-verify', { ...remote, tls: 'unverified' }],
  ['postgres://svc:secret@db.example.org/agents?sslmode=require', { ...remote, tls: 'verified' }],
])('parses %s', (url, address) => {
  expect(parseDatabaseUrl(url)).toEqual(address);
});

test.each([
  ['mysql://svc:hush@h/db', 'must be postgres://'],
  ['svc:hush@h/db', 'must be postgres://'],
  ['postgres://svc:hush@h', 'the name of the database is missing'],
  ['postgres://svc:hush@h/', 'the name of the database is missing'],
  ['postgres://svc:hush#@h/db', 'write # as %23'],
  ['postgres://svc:hush%@h/db', 'write % as %25'],
  ['postgres://svc:hu/sh@h/db', 'write special characters of the password'],
  ['postgres://svc:12/hush@h/db', 'write special characters of the password'],
  ['postgres://svc:hush@a,b/db', 'with one host'],
  ['postgres://svc:hush@a:1,b:2/db', 'with one host'],
  ['postgres://svc:hush@h:port/db', 'must be postgres://'],
  ['postgres://svc@h/db?password=hush', 'only host and sslmode'],
  ['postgres://svc@h/db?host=hush', 'the absolute path of a folder'],
  ['postgres://svc:hush@h/db?sslmode=prefer', 'unsupported sslmode'],
  ['postgres://svc:hush@h/db?sslmode=toString', 'unsupported sslmode'],
])('rejects %s, and does not repeat it', (url, reason) => {
  const found = parseDatabaseUrl(url);
  expect(found).toContain(reason);
  expect(found).not.toContain('hush');
});

test.each([
  ['postgres://svc:hush@db.example.org/agents', 'agents at db.example.org:5432'],
  ['postgres://svc:hush@[::1]:6000/agents', 'agents at [::1]:6000'],
  ['postgres:///agents?host=/run/postgresql', 'agents in /run/postgresql'],
])('describes %s without its password', (url, text) => {
  const address = parseDatabaseUrl(url);
  if (typeof address === 'string') throw new Error(address);
  expect(describeDatabase(address)).toBe(text);
});
