/** `svc audit …` (root only): lists, exports and verifies the audit log. */
import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { type ApiOptions, connect } from '../../../cli/api.ts';
import type { Context, Io } from '../../../cli/context.ts';
import { failed, usage } from '../../../cli/failure.ts';
import { integer, remote } from '../../../cli/options.ts';
import { type Column, jsonText, print, printJson, printRows } from '../../../cli/output.ts';
import { openStdin } from '../../../cli/prompt.ts';
import type { AuditRecord } from '../rules/audit.ts';
import { type FileVerdict, verifyFile } from './audit-file.ts';

interface Filter extends ApiOptions {
  event?: string;
  user?: string;
  agent?: string;
  since?: string;
  until?: string;
}

interface ListOptions extends Filter {
  json?: boolean;
  limit: number;
}

interface VerifyOptions extends ApiOptions {
  json?: boolean;
  head?: string;
  file?: string;
}

const columns: Column<AuditRecord>[] = [
  { title: 'ID', value: ({ id }) => id },
  {
    title: 'TIME',
    value: ({ timestamp }) => timestamp,
    short: ({ timestamp }) => timestamp.replace(/\.\d+Z$/, 'Z'),
  },
  { title: 'EVENT', value: ({ event }) => event },
  { title: 'USER', value: ({ user_id }) => user_id, spare: true },
  { title: 'AGENT', value: ({ agent_id }) => agent_id, spare: true },
  { title: 'IP', value: ({ ip }) => ip, spare: true },
  { title: 'DETAILS', value: ({ details }) => JSON.stringify(details), spare: 20 },
];

/** The result for the plane's records, or for those of a file, which may begin later. */
type Verdict = Omit<FileVerdict, 'first_id'> & { first_id?: number };

export function addAudit(program: Command, context: Context): void {
  const { io } = context;
  const audit = program.command('audit').description('list, export and verify the audit log (root)');

  withFilter(remote(audit, 'ls', 'list the newest records, newest first'))
    .alias('list')
    .option('-n, --limit <n>', 'maximum number of records', integer, 40)
    .action(async (options: ListOptions) => {
      const api = await connect(context, options);
      const records = [];
      const query = toQuery(options);
      if (options.limit > 0) {
        for await (const record of api.each('listAudit', { query })) {
          records.push(record);
          if (records.length >= options.limit) break;
        }
      }
      await printRows(io, records, columns, options);
    });

  withFilter(remote(audit, 'export', 'print every record as one line of JSON, newest first')).action(
    async (options: Filter) => {
      const api = await connect(context, options);
      for await (const record of api.each('listAudit', { query: toQuery(options) }))
        await print(io, jsonText(record));
    },
  );

  remote(audit, 'verify', 'verify the hash chain; exit code 1 if a record was changed')
    .option(
      '--head <hash>',
      'require a record with this hash (audit_hash in the log), to detect a truncated log',
    )
    .option('--file <file>', 'verify an export instead of the plane’s records (-: stdin)')
    .action(async (options: VerifyOptions) => {
      const { head, file, json } = options;
      const verdict: Verdict = await (file === undefined
        ? connect(context, options).then((api) => api.call('verifyAudit', { query: { head } }))
        : verifyFile(readLines(io, file), head));
      if (json) await printJson(io, verdict);
      const { records, broken_id, first_id = 1 } = verdict;
      if (broken_id !== null) {
        const valid_part = `${records} records before it are valid, head ${verdict.head}`;
        const gaps = file === undefined ? '' : ' (a filtered export has gaps)';
        throw failed(`record ${broken_id} does not match the record before it${gaps}: ${valid_part}`);
      }
      if (verdict.holds_head === false)
        throw failed(`no record has the hash ${head}: the log was truncated or rewritten`);
      const from = first_id > 1 ? ` from ${first_id} on` : '';
      if (!json) await print(io, `chain intact: ${records} records${from}, head ${verdict.head}\n`);
    });
}

function withFilter(command: Command): Command {
  return command
    .option('--event <event>', 'only records of this event')
    .option('--user <id>', 'only actions of this user')
    .option('--agent <id>', 'only records about this agent')
    .option('--since <time>', 'only records at or after this time')
    .option('--until <time>', 'only records before this time');
}

function toQuery({ event, user: user_id, agent: agent_id, since, until }: Filter) {
  return { event, user_id, agent_id, since: instant(since, '--since'), until: instant(until, '--until') };
}

/** Converts a date or time to the API's format. It is local time unless it names another zone. */
function instant(text: string | undefined, flag: string): string | undefined {
  if (text === undefined) return undefined;
  const time = new Date(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text);
  if (Number.isNaN(time.getTime()))
    throw usage(`${flag} ${text}: must be a time, for example 2026-01-31T14:00`);
  return time.toISOString();
}

function readLines(io: Io, file: string): AsyncIterable<string> {
  const input = file === '-' ? openStdin(io) : createReadStream(resolve(io.cwd, file));
  return createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
}
