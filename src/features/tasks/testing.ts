/** Tasks and their messages for tests, on a real database. Teams and runs are rows; mail is collected in a list. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newId } from '../../base/ids.ts';
import { silentLog } from '../../base/log.ts';
import { Feed } from '../../events/feed.ts';
import { IdempotencyKeys } from '../../server/idempotency.ts';
import type { Store, Tx } from '../../store/store.ts';
import { TestClock } from '../../testing/accounts.ts';
import { openTestStore } from '../../testing/test-store.ts';
import { Facts } from '../../work/facts.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import { Audit } from '../audit/service.ts';
import { findRun, insertRun, nextRunNumber, type RunRow, toRun, updateRun } from '../runs/queries/runs.ts';
import type { Run, RunStatus } from '../runs/rules/run.ts';
import { insertTeam, updateTeam } from '../teams/queries.ts';
import type { Member, TeamSpec } from '../teams/rules/team.ts';
import { Messages, type Post } from './messages.ts';
import { findTask } from './queries/tasks.ts';
import type { Task } from './rules/task.ts';
import { Tasks } from './service.ts';

export const ROOT = caller('root', 'root');
/** Created the team. */
export const MIA = caller('mia');
/** A human member of the team. */
export const JON = caller('jon');
/** Not related to the team. */
export const EVE = caller('eve');

function caller(username: string, role: Caller['role'] = 'user'): Caller {
  return { user_id: `usr_${username}`, username, role, token_id: `tok_${username}`, grant: null, ip: null };
}

export const TEAM = 'team_1';

const members = ['lead', 'dev', 'ops'].map(
  (member_id): Member => ({ member_id, description: '', skills: [], prompt: '', agent: null }),
);

export class TasksFixture {
  readonly folder: string;
  readonly store: Store;
  readonly clock = new TestClock();
  readonly feed: Feed;
  readonly idempotency: IdempotencyKeys;
  readonly tasks: Tasks;
  readonly messages: Messages;
  /** Mail, in the order of posting. */
  readonly posted: Post[] = [];
  /** The inputs of the runs that tasks started. */
  readonly started: Record<string, unknown>[] = [];
  /** Thrown by the mailbox, when set. */
  refusal: Error | null = null;
  /** Which mail `refusal` is thrown for. */
  isRefused: (mail: Post) => boolean = () => true;
  #facts: Facts;

  private constructor(folder: string, store: Store) {
    this.folder = folder;
    this.store = store;
    const { clock } = this;
    this.feed = new Feed({ store, clock });
    this.idempotency = new IdempotencyKeys({ store, clock, key: new Uint8Array(32) });
    const audit = new Audit({ store, clock, log: silentLog });
    const common = { store, clock, feed: this.feed, audit, idempotency: this.idempotency };
    this.tasks = new Tasks({
      ...common,
      createRun: async (tx, { id, team, task_num, input, created_by }) => {
        tx.afterCommit(() => void this.started.push(input));
        await this.#begin(tx, { id, team_num: team.num, task_num, spec: team.spec, created_by });
        return this.#put(tx, id, 'running');
      },
    });
    this.messages = new Messages({
      ...common,
      logger: silentLog,
      post: async (tx, mail) => {
        if (this.refusal && this.isRefused(mail)) throw this.refusal;
        tx.afterCommit(() => void this.posted.push(mail));
      },
    });
    this.#facts = this.#newFacts();
  }

  /** Creates a team with a leader and two workers, and its users. */
  static async make(): Promise<TasksFixture> {
    const folder = await mkdtemp(join(tmpdir(), 'svc-tasks-'));
    const fixture = new TasksFixture(folder, await openTestStore(folder));
    await fixture.#fill();
    await fixture.openFacts();
    return fixture;
  }

  #newFacts(): Facts {
    return new Facts({ store: this.store, clock: this.clock, log: silentLog });
  }

  async openFacts(): Promise<void> {
    await this.#facts.open({ tasks: this.tasks.facts(), messages: this.messages.facts() });
  }

  /** Facts from now on are consumed after the next `openFacts`. */
  async closeFacts(): Promise<void> {
    await this.#facts.close();
    this.#facts = this.#newFacts();
  }

  #fill(): Promise<void> {
    return this.store.write(async (tx) => {
      const times = { created_at: 0, updated_at: 0 };
      const people = [ROOT, MIA, JON, EVE].map(({ user_id: id, username, role }) => ({ id, username, role }));
      const users = people.map((person) => ({ ...person, password_hash: '', ...times }));
      await tx.run(tx.sql.insertInto('users').values(users));
      for (const id of [TEAM, 'team_2']) {
        const row = { id, name: id, description: '', spec: JSON.stringify(makeSpec({})), version: 1 };
        const team_num = await insertTeam(tx, { ...row, created_by: MIA.user_id, ...times });
        await tx.run(tx.sql.insertInto('team_humans').values({ team_num, user_id: JON.user_id }));
      }
    });
  }

  /** Changes the team. */
  respec(changes: Partial<TeamSpec>): Promise<void> {
    const spec = JSON.stringify(makeSpec(changes));
    return this.store.write((tx) => updateTeam(tx, 1, { spec }));
  }

  task(title = 'Tidy up'): Promise<Task> {
    const input = { title, description: '', assignee_member_id: null };
    return this.tasks.create(MIA, TEAM, input, null);
  }

  /** Starts a run of a task. */
  run(task_id: string, changes: Partial<TeamSpec> = {}): Promise<Run> {
    const id = newId('run');
    return this.store.write(async (tx) => {
      const { team_num, num: task_num } = (await findTask(tx, task_id))!;
      const spec = JSON.stringify(makeSpec(changes));
      await this.#begin(tx, { id, team_num, task_num, spec, created_by: JON.user_id });
      return toRun(await this.#put(tx, id, 'running'));
    });
  }

  /** Sets the status of a run and records the fact. */
  runIs(run_id: string, status: RunStatus): Promise<Run> {
    return this.store.write(async (tx) => toRun(await this.#put(tx, run_id, status)));
  }

  async #begin(
    tx: Tx,
    run: { id: string; team_num: number; task_num: number; spec: string; created_by: string },
  ): Promise<void> {
    await insertRun(tx, {
      ...run,
      number: await nextRunNumber(tx, run.team_num),
      status: 'pending',
      input: '{}',
      attempt: 1,
      version: 1,
      ...({ mode: 'steps', leader: 'unasked', rounds: 0, steps_seen: 0 } as const),
      created_at: this.clock.now(),
    });
  }

  async #put(tx: Tx, run_id: string, status: RunStatus): Promise<RunRow> {
    const { num, attempt } = (await findRun(tx, run_id))!;
    updateRun(tx, num, { status });
    await this.#facts.record(tx, 'run_changed', run_id, { run_id, status, attempt });
    return (await findRun(tx, run_id))!;
  }

  async audited(event: AuditEvent): Promise<unknown[]> {
    const rows = await this.store.read((reader) =>
      reader.all(reader.sql.selectFrom('audit').selectAll().where('event', '=', event).orderBy('id')),
    );
    return rows.map(({ details }) => JSON.parse(details));
  }

  async end(): Promise<void> {
    await this.#facts.close();
    this.feed.close();
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

function makeSpec(changes: Partial<TeamSpec>): TeamSpec {
  return {
    spec_version: 1,
    entrypoint: { type: 'task' },
    members,
    leader_member_id: 'lead',
    steps: [],
    review_route: 'human',
    max_rounds: 20,
    ...changes,
  };
}
