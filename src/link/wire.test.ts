import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { ProgramFindingSchema } from './proto/node_pb.ts';
import { findingsFromWire, ProtocolError } from './wire.ts';

const question = { program: 'a', version_argv: ['a', '-v'], env: ['KEY', 'OTHER'], files: ['.a', '.b'] };

test('a finding is limited in length and to the variables and files of its question', () => {
  const finding = create(ProgramFindingSchema, {
    path: '/x'.repeat(limits.path_chars_max),
    version: 'v'.repeat(1000),
    envSet: ['KEY', 'KEY', 'AWS_SECRET=1'],
    filesFound: ['.b', '/etc/passwd'],
  });
  const [found] = findingsFromWire([finding], [question]);
  expect(found).toMatchObject({ env_set: ['KEY'], files_found: ['.b'] });
  expect(found?.path).toHaveLength(limits.path_chars_max);
  expect(found?.version).toHaveLength(limits.probe_version_chars_max);
  const nothing = { path: null, version: null, env_set: [], files_found: [] };
  expect(findingsFromWire([create(ProgramFindingSchema)], [question])).toEqual([nothing]);
});

test('a missing or extra finding is a protocol error', () => {
  expect(() => findingsFromWire([], [question])).toThrow(ProtocolError);
  expect(() => findingsFromWire([create(ProgramFindingSchema)], [])).toThrow(ProtocolError);
});
