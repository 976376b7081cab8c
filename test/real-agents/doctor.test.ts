import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { examineAgent } from '../../src/agent-doctor/doctor.ts';
import type { Report } from '../../src/agent-doctor/report.ts';
import { installAgent, type RealAgent, type RealAgentName } from '../../src/testing/real-agents.ts';

interface Expected {
  /** Checks that are not `ok`, as the release that is installed is known to be. */
  others: Record<string, string>;
  options: { optionId: string; kind: string }[];
}

const expected: Record<RealAgentName, Expected> = {
  qwen: {
    others: {},
    options: [
      { optionId: 'proceed_always', kind: 'allow_always' },
      { optionId: 'proceed_once', kind: 'allow_once' },
      { optionId: 'cancel', kind: 'reject_once' },
    ],
  },
  opencode: {
    others: { stdout: 'weak' },
    options: [
      { optionId: 'once', kind: 'allow_once' },
      { optionId: 'always', kind: 'allow_always' },
      { optionId: 'reject', kind: 'reject_once' },
    ],
  },
};

for (const [name, { others, options }] of Object.entries(expected) as [RealAgentName, Expected][]) {
  describe(name, () => {
    let agent: RealAgent;
    beforeAll(async () => {
      agent = await installAgent(name);
    });
    afterAll(() => agent?.remove());

    test('the doctor finds what is known of it', async () => {
      const { argv, env } = agent;
      const report = await examineAgent({ argv, env, scripted: true, signal: new AbortController().signal });
      console.log(table(report));
      expect(report.known_as).toBe(name);
      expect(gradesOf(report)).toEqual(others);
      expect(report.checks.find((check) => check.name === 'permission')!.facts).toMatchObject({ options });
    });
  });
}

function gradesOf({ checks }: Report): Record<string, string> {
  const others = checks.filter(({ grade }) => grade !== 'ok');
  return Object.fromEntries(others.map(({ name, grade }) => [name, grade]));
}

function table({ agent, checks, grade }: Report): string {
  const rows = checks.map(({ name, grade, duration_ms, detail }) =>
    [name.padEnd(18), grade.padEnd(7), String(duration_ms ?? '').padStart(6), detail].join('  '),
  );
  return [`${agent?.name} ${agent?.version}: ${grade}`, ...rows].join('\n');
}
