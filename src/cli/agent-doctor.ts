/** `svc agents doctor`: an ACP agent is examined on this machine, without a plane. The work is done by `agent-doctor/`. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Check, Report } from '../agent-doctor/report.ts';
import type { Preset } from '../domain/preset.ts';
import { findPreset } from '../domain/presets.ts';
import type { Context } from './context.ts';
import { failed, usage } from './failure.ts';
import { leaf, timeLimit } from './options.ts';
import { type Column, printJson, printRows, say } from './output.ts';
import { visible } from './terminal.ts';

interface Options {
  json?: boolean;
  model?: string;
  agent?: string;
  preset?: string;
  mode?: string;
  prompt?: string;
  timeout?: number;
}

type Row = Pick<Check, 'grade' | 'detail' | 'duration_ms'> & { number: number | null; name: string };

const columns: Column<Row>[] = [
  { title: '#', value: (row) => row.number },
  { title: 'CHECK', value: (row) => row.name },
  { title: 'GRADE', value: (row) => row.grade },
  { title: 'TIME', value: ({ duration_ms }) => (duration_ms === null ? null : seconds(duration_ms)) },
  { title: 'DETAIL', value: (row) => row.detail },
];

export function addAgentDoctor(agents: Command, context: Context): void {
  const { io } = context;
  leaf(agents, 'doctor [program...]', 'examine an ACP agent by its command (after --), without a plane')
    .option('--model <name>', 'scripted: not its own model but a scripted one, without key and network')
    .option('--agent <name>', 'which agent it is, where the command does not tell')
    .option('--preset <id>', 'as agents of this preset run; without a command, the preset’s own')
    .option('--mode <id>', 'the mode that its session is set to')
    .option('--prompt <text>', 'what it is asked to do; it should need a permission')
    .option('--timeout <duration>', 'for each check; default: 60s', timeLimit)
    .action(async (given: string[], options: Options) => {
      const preset = presetOf(options.preset);
      const argv = given.length > 0 ? given : preset?.program?.argv;
      if (!argv) throw usage('give a program after --, or --preset ID of an agent that has one');
      const { examineAgent } = await import('../agent-doctor/doctor.ts');
      const { agentNames } = await import('../agent-doctor/known.ts');
      if (options.model !== undefined && options.model !== 'scripted')
        throw usage('--model: there is only scripted');
      const agent = agentNames.find((name) => name === options.agent) ?? null;
      if (options.agent !== undefined && !agent)
        throw usage(`--agent: must be one of ${agentNames.join(', ')}`);
      const report = await examineAgent({
        argv: argv.map((word) => absolute(io.cwd, word)) as [string, ...string[]],
        env: io.env,
        signal: io.signal,
        agent,
        preset,
        scripted: options.model === 'scripted',
        mode: options.mode ?? null,
        prompt: options.prompt ?? null,
        ...(options.timeout !== undefined && { timeout_ms: options.timeout }),
        onCheck: (name) => {
          if (io.stderr.isTTY && !options.json) say(io, `${name} …`);
        },
      });
      if (options.json) await printJson(io, report);
      else await printRows(io, [...report.checks, totalRow(report)], columns, options);
      const bad = report.checks.filter(({ grade }) => grade === 'failed').length;
      if (bad === 0) return;
      if (!options.json && report.stderr !== '') say(io, `it wrote to stderr:\n${lines(report.stderr)}`);
      throw failed(`${bad} of ${report.checks.length} checks failed`);
    });
}

function presetOf(id: string | undefined): Preset | null {
  if (id === undefined) return null;
  const preset = findPreset(id);
  if (preset?.protocol !== 'acp') throw usage(`--preset: ${id} is no preset that speaks ACP`);
  return preset;
}

/** The agent runs in a folder of the doctor's: paths of files here, as in `node dist/agent.js`, have to be whole. */
function absolute(cwd: string, word: string): string {
  return word.includes('/') && existsSync(resolve(cwd, word)) ? resolve(cwd, word) : word;
}

function totalRow({ checks, grade }: Report): Row {
  const counts = Map.groupBy(checks, (check) => check.grade);
  return {
    number: null,
    name: 'total',
    grade,
    duration_ms: checks.reduce((sum, check) => sum + (check.duration_ms ?? 0), 0),
    detail: [...counts].map(([each, those]) => `${those.length} ${each}`).join(', '),
  };
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}

function lines(text: string): string {
  return text.trimEnd().split('\n').map(visible).join('\n');
}
