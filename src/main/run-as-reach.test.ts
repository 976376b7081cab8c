import { expect, test } from 'vitest';
import type { Exec } from '../node/processes/exec.ts';
import { findReadableKeys } from './run-as-reach.ts';

const user = { name: 'agents', uid: 65534, gid: 65534, home: '/' };
const seeing = (keys: string): Exec => ({
  run: async () => ({
    ...{ code: 0, signal: null, stderr: Buffer.alloc(0), truncated: false, timed_out: false },
    stdout: Buffer.from(keys),
  }),
});
const OWN = `2de80d93 I--Q---     2 perm 1f3f0000 65534 65534 keyring   _uid.65534: empty
05d72909 I--Q---     1 perm 3f010000 65534 65534 user      mine: 8
`;

test('reports keys of others that agents could use, but not keyrings or their own keys', async () => {
  expect(await findReadableKeys(seeing(OWN), user)).toBeNull();
  const login = '1a2b3c4d I--Q---     1 perm 3f010000     0     0 user      disk: 23\n';
  expect(await findReadableKeys(seeing(OWN + login), user)).toContain('with 1 keys of others');
});
