/**
 * `svc triggers …`: mail that an actor gets from itself at a set time or on a schedule. `svc runs triggers`: all triggers of
 * a run.
 */
import type { Command } from 'commander';
import { type Api, type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { usage } from '../../../cli/failure.ts';
import { parseMessageArguments, withJson } from '../../../cli/json-options.ts';
import { duration, remote } from '../../../cli/options.ts';
import { type Column, printRecord, printRows, printStatus } from '../../../cli/output.ts';
import { printable } from '../../../cli/terminal.ts';
import { findRun } from '../../teams/commands/team-refs.ts';
import { ownActor } from './mail.ts';

type Options = ApiOptions & { json?: boolean };

interface SetOptions extends Options {
  run: string;
  actor?: string;
  at?: string;
  /** In milliseconds. */
  every?: number;
  cron?: string;
  timezone?: string;
}

export function addTriggers(program: Command, context: Context): void {
  const { io } = context;
  const triggers = program.command('triggers').description('schedule mail from an actor of a run to itself');

  remote(triggers, 'ls [actor]', "list an actor's time triggers, newest first (default: yours)")
    .alias('list')
    .option('--run <run>', 'only triggers of this run')
    .action(async (actor: string | undefined, options: Options & { run?: string }) => {
      const api = await connect(context, options);
      const params = { actor_id: actor ?? (await ownActor(api)) };
      const run_id = options.run === undefined ? undefined : (await findRun(api, options.run)).id;
      await printRows(
        io,
        await api.all('listTriggers', { params, query: { run_id } }),
        [
          { title: 'ID', value: (trigger) => trigger.id },
          { title: 'RUN', value: (trigger) => trigger.run_id },
          ...scheduleColumns,
        ],
        options,
      );
    });

  const set = remote(
    triggers,
    'set [text...]',
    'schedule mail from an actor to itself, until the run ends; pass - to read the text from stdin',
  )
    .requiredOption('--run <run>', 'the run')
    .option('--actor <actor>', 'the actor (default: you)')
    .option('--at <time>', 'once, at an RFC 3339 time')
    .option('--every <duration>', 'repeatedly, for example 10m', duration)
    .option('--cron <pattern>', 'on a schedule of five fields: minute, hour, day, month, weekday')
    .option('--timezone <name>', 'time zone of --cron, for example Europe/London (default: UTC)');
  withJson(set, 'payload', 'a JSON object instead of text').action(
    async (args: string[], options: SetOptions) => {
      const content = await parseMessageArguments(io, args, options);
      const { at, every, cron, timezone } = options;
      if (every !== undefined && every % 1000 !== 0) throw usage('--every must be a whole number of seconds');
      const api = await connect(context, options);
      const body = {
        run_id: (await findRun(api, options.run)).id,
        ...(at !== undefined && { at }),
        ...(every !== undefined && { every_seconds: every / 1000 }),
        ...(cron !== undefined && { cron }),
        ...(timezone !== undefined && { timezone }),
        payload: 'text' in content ? content : content.payload,
      };
      const params = { actor_id: options.actor ?? (await ownActor(api)) };
      const created = await api.call('setTrigger', { params, body, idempotency_key: crypto.randomUUID() });
      await printRecord(io, created, options);
    },
  );

  remote(triggers, 'delete <trigger> [actor]', "delete an actor's time trigger (default: yours)")
    .alias('rm')
    .action(async (trigger_id: string, actor: string | undefined, options: Options) => {
      const api = await connect(context, options);
      const params = { actor_id: actor ?? (await ownActor(api)), trigger_id };
      await api.call('deleteTrigger', { params });
      if (options.json) await printRecord(io, { id: trigger_id }, options);
      else printStatus(io, printable(`deleted ${trigger_id}`));
    });
}

/** `svc runs triggers`. */
export function addRunTriggers(runs: Command, context: Context): void {
  const { io } = context;
  remote(runs, 'triggers <run>', 'list the time triggers of all actors of a run, newest first').action(
    async (ref: string, options: Options) => {
      const api = await connect(context, options);
      const { id: run_id } = await findRun(api, ref);
      await printRows(
        io,
        await api.all('listRunTriggers', { params: { run_id } }),
        [
          { title: 'ID', value: (trigger) => trigger.id },
          { title: 'ACTOR', value: (trigger) => trigger.actor_id },
          ...scheduleColumns,
        ],
        options,
      );
    },
  );
}

type Trigger = Awaited<ReturnType<typeof Api.prototype.call<'setTrigger'>>>;

function formatSchedule({ at, every_seconds, cron, timezone }: Trigger): string {
  if (at !== null) return at;
  return cron === null ? `every ${every_seconds}s` : [cron, timezone].filter(Boolean).join(' ');
}

const scheduleColumns: Column<Trigger>[] = [
  { title: 'WHEN', value: formatSchedule },
  { title: 'NEXT', value: (trigger) => trigger.next_at },
  { title: 'FIRED', value: (trigger) => trigger.fired },
  { title: 'PAYLOAD', value: (trigger) => JSON.stringify(trigger.payload) },
];
