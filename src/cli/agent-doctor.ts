/** `svc agents doctor`: examines an ACP agent on this machine, without a plane. `tools/agent-doctor/` does the work. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { findPreset } from '../features/presets/rules/catalog.ts';
import type { Preset } from '../features/presets/rules/preset.ts';
import type { Check, Report } from '../tools/agent-doctor/report.ts';
import type { Context } from './context.ts';
import { failed, usage } from './failure.ts';
import { addJsonCommand, timeLimit } from './options.ts';
import { type Column, printJson, printRows, printStatus } from './output.ts';
import { printable } from './terminal.ts';

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
  addJsonCommand(
    agents,
    'doctor [program...]',
    'check whether an ACP agent works with svc, without a plane; its command follows --',
  )
    .option('--model <name>', 'scripted: use a scripted model, which needs no API key and no network')
    .option('--agent <name>', 'name of the agent, if it cannot be derived from the command')
    .option('--preset <id>', 'run it as an agent of this preset; without a command, run the preset’s command')
    .option('--mode <id>', 'the mode to set on its session')
    .option('--prompt <text>', 'the prompt to send; it should make the agent ask for permission')
    .option('--timeout <duration>', 'time limit for each check (default: 60s)', timeLimit)
    .action(async (args: string[], options: Options) => {
      const preset = findAcpPreset(options.preset);
      const argv = args.length > 0 ? args : preset?.program?.argv;
      if (!argv) throw usage('give a program after --, or --preset ID of a preset that has one');
      const { examineAgent } = await import('../tools/agent-doctor/doctor.ts');
      const { agentNames } = await import('../tools/agent-doctor/known-agents.ts');
      if (options.model !== undefined && options.model !== 'scripted')
        throw usage('--model: must be scripted');
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
          if (io.stderr.isTTY && !options.json) printStatus(io, `${name} …`);
        },
      });
      if (options.json) await printJson(io, report);
      else await printRows(io, [...report.checks, totalRow(report)], columns, options);
      const bad = report.checks.filter(({ grade }) => grade === 'failed').length;
      if (bad === 0) return;
      if (!options.json && report.stderr !== '')
        printStatus(io, `stderr of the agent:\n${lines(report.stderr)}`);
      throw failed(`${bad} of ${report.checks.length} checks failed`);
    });
}

function findAcpPreset(id: string | undefined): Preset | null {
  if (id === undefined) return null;
  const preset = findPreset(id);
  if (preset?.protocol !== 'acp') throw usage(`--preset: ${id} is not a preset that speaks ACP`);
  return preset;
}

/** The agent runs in a temporary folder, so relative paths of files here, as in `node dist/agent.js`, become absolute. */
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
  return text.trimEnd().split('\n').map(printable).join('\n');
}
