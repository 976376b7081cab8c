import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { limits } from '../base/limits.ts';
import { boundEnd } from '../core/fact-bounds.ts';
import { Problem } from '../core/problem.ts';
import { limits as linkLimits } from './limits.ts';
import { FactSchema, ProgramFindingSchema, SessionEndSchema } from './proto/node_pb.ts';
import { factFromWire, findingsFromWire, ProtocolError, refusalToWire } from './wire.ts';

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

test('an error text of any length and form fits in the trailers of a response', () => {
  const text = '\u4e2d\ud800'.repeat(1_000_000);
  const { message, refusedPath, kind } = refusalToWire(
    new Problem('invalid', 'x', text, { refused_path: text }),
  );
  expect(kind).toBe('invalid');
  for (const cut of [message, refusedPath!]) {
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(linkLimits.link_text_chars_max);
    expect(cut).toMatch(/^(\u4e2d\ufffd)+\u4e2d?$/);
  }
});

test('an end from a node of an earlier version lists a bounded number of processes', () => {
  const leftovers = Array.from({ length: 8_000 }, (_, pid) => ({
    pid: BigInt(pid),
    command: 'x'.repeat(999),
  }));
  const value = create(SessionEndSchema, { leftovers });
  const { body } = factFromWire(create(FactSchema, { body: { case: 'ended', value } }));
  if (body.kind !== 'ended') throw new Error(body.kind);
  expect(body.end.leftovers).toHaveLength(limits.leftovers_max);
  expect(body.end.leftovers.at(-1)?.command).toMatch(/^x+ \(and 7950 more processes\)$/);
  expect(boundEnd(body.end)).toEqual(body.end);
});
