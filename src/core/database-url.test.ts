import { expect, test } from 'vitest';
import { describeDatabase, parseDatabaseUrl } from './database-url.ts';

const at = (host: string, port = 5432) => ({ hosts: [{ host, port }] });
const remote = {
  ...at('db.example.org'),
  user: 'svc',
  password: 'secret',
  database: 'agents',
  tls: null,
};

test.each([
  ['postgres://svc:secret@db.example.org/agents', remote],
  ['postgresql://svc:secret@db.example.org:6000/agents', { ...remote, ...at('db.example.org', 6000) }],
  ['postgres://svc@db.example.org/agents', { ...remote, password: null }],
  ['postgres://db.example.org/agents', { ...remote, user: null, password: null }],
  [
    'postgres://s%40c:a%2Fb%25%23@db.example.org/my%20db',
    { ...remote, user: 's@c', password: 'a/b%#', database: 'my db' },
  ],
  ['postgres://svc:a@b@db.example.org/agents', { ...remote, password: 'a@b' }],
  ['postgres://svc:secret@[::1]:6000/agents', { ...remote, ...at('::1', 6000) }],
  ['postgres:///agents', { ...remote, ...at('localhost'), user: null, password: null }],
  [
    'postgres:///agents?host=/run/postgresql',
    { ...remote, ...at('/run/postgresql'), user: null, password: null },
  ],
  ['postgres://svc@/agents?host=%2Frun', { ...remote, ...at('/run'), password: null }],
  ['postgres://svc:secret@db.example.org/agents?sslmode=disable', { ...remote, tls: 'off' }],
  ['postgres://svc:secret@db.example.org/agents?sslmode=no-verify', { ...remote, tls: 'unverified' }],
  ['postgres://svc:secret@db.example.org/agents?sslmode=require', { ...remote, tls: 'verified' }],
  [
    'postgres://svc:a,b@10.0.0.1,db.example.org:6000,[::1]:7000/agents?target_session_attrs=read-write',
    {
      ...remote,
      hosts: [
        { host: '10.0.0.1', port: 5432 },
        { host: 'db.example.org', port: 6000 },
        { host: '::1', port: 7000 },
      ],
      password: 'a,b',
    },
  ],
  ['postgres://svc:secret@db.example.org/agents?target_session_attrs=primary', remote],
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
  ['postgres://svc:hush@a,,b/db', 'with commas in between'],
  ['postgres://svc:hush@a,/db', 'with commas in between'],
  ['postgres://svc:hush@,a/db', 'with commas in between'],
  ['postgres://svc:hush@a:1,b:port/db', 'with commas in between'],
  ['postgres://svc:12,hush/sh@h/db', 'write special characters of the password'],
  ['postgres://svc:hush@a,b', 'the name of the database is missing'],
  ['postgres://svc:hush@a,b/db?host=/run', 'use one of them'],
  ['postgres://svc:hush@a,b/db?target_session_attrs=any', 'unsupported target_session_attrs'],
  ['postgres://svc:hush@h:port/db', 'must be postgres://'],
  ['postgres://svc@h/db?password=hush', 'only host, sslmode, target_session_attrs'],
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
  ['postgres://svc:hush@a:1,[::1]/agents', 'agents at a:1,[::1]:5432'],
])('describes %s without its password', (url, text) => {
  const address = parseDatabaseUrl(url);
  if (typeof address === 'string') throw new Error(address);
  expect(describeDatabase(address)).toBe(text);
});
