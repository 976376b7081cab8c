/** Teams as users see them: definitions, each with a version, and the people who share them. */
import { isDeepStrictEqual } from 'node:util';
import { fieldPath } from '../../api/field-path.ts';
import type { Clock } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { MAIN_NODE } from '../../core/node.ts';
import { isPaged, type Page, type PageRequest, pageOfRows, readCursor } from '../../core/page.ts';
import { authorize, viewOf } from '../../core/policy.ts';
import { invalid, problems } from '../../core/problem.ts';
import type { IdempotencyKeys } from '../../server/idempotency.ts';
import { teamResource } from '../../store/resources.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import { findUserByName } from '../../store/users.ts';
import type { Outbox } from '../../work/outbox.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import type { Audit } from '../audit/service.ts';
import type { Extensions, NodeDirectory } from '../feature.ts';
import { nodeIds } from '../nodes/queries.ts';
import { requireTeam } from './access.ts';
import type { Membership } from './membership.ts';
import {
  deleteTeam,
  findTeam,
  insertTeam,
  isTeamKey,
  isTeamName,
  listHumans,
  listTeams,
  parseEditors,
  putHumans,
  type TeamRow,
  toTeam,
  updateTeam,
} from './queries.ts';
import { restoreEnv } from './rules/env.ts';
import type { SpecInput, Team, TeamSpec } from './rules/team.ts';

export interface TeamsOptions {
  store: Store;
  clock: Clock;
  audit: Audit;
  membership: Membership;
  outbox: Outbox;
  idempotency: Pick<IdempotencyKeys, 'storeWith'>;
  nodes: Pick<NodeDirectory, 'choose'>;
  extensions: Pick<Extensions, 'hasOpenRuns'>;
}

export interface CreateTeam {
  name: string;
  /** Absent: derived from the name. */
  key?: string | undefined;
  description: string;
  spec: SpecInput;
  /** Usernames. */
  human_members: string[];
}

type Nodes = TeamsOptions['nodes'];

export type UpdateTeam = { [Key in keyof CreateTeam]?: CreateTeam[Key] | undefined };

export class Teams {
  readonly #options: TeamsOptions;

  constructor(options: TeamsOptions) {
    this.#options = options;
  }

  /** Teams that the caller may see, newest first. Without a page request: all of them. */
  list(caller: Caller, request: PageRequest): Promise<Page<Team>> {
    authorize(caller, 'teams.list');
    const limit = request.limit ?? limits.page_items_default;
    const paged = isPaged(request);
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#options.store.read(async (reader) => {
      const rows = await listTeams(reader, {
        view: viewOf(caller),
        before_num,
        limit: paged ? limit + 1 : undefined,
      });
      const { items, ...rest } = pageOfRows(rows, paged ? limit : rows.length, (row) => [row.num]);
      const teams: Team[] = [];
      for (const row of items) teams.push(await record(reader, row));
      return { items: teams, ...rest };
    });
  }

  /** Throws `team not found`, also for a team that the caller may not see. */
  get(caller: Caller, team_id: string): Promise<Team> {
    return this.#options.store.read(async (reader) =>
      record(reader, await requireTeam(reader, caller, 'team.read', team_id)),
    );
  }

  /** Throws a 409 if the name or the key is in use, and a 400 for an unknown user. */
  async create(caller: Caller, input: CreateTeam, idempotency_key: string | null): Promise<Team> {
    authorize(caller, 'teams.create');
    const { store, clock, membership, idempotency, nodes } = this.#options;
    const id = newId('team');
    return store.write(async (tx) => {
      await assertUnused(tx, input);
      const now = clock.now();
      const num = await insertTeam(tx, {
        ...{ id, name: input.name, key: input.key, description: input.description },
        ...{ spec: storedSpec(nodes, input.spec, null) },
        ...{ version: 1, created_by: caller.user_id, spec_editors: JSON.stringify([editorId(caller)]) },
        ...{ created_at: now, updated_at: now },
      });
      await putHumans(tx, num, await this.#humans(tx, input.human_members));
      await membership.changed(tx, num);
      const row = (await findTeam(tx, id))!;
      await this.#audit(tx, caller, 'team_created', row, { human_members: input.human_members });
      const team = await record(tx, row);
      if (idempotency_key !== null) {
        const answer = { status: 201, location: `/api/teams/${id}`, body: team };
        await idempotency.storeWith(tx, caller, idempotency_key, answer);
      }
      return team;
    });
  }

  /**
   * `version`: the version on which the change is based. Throws if it is no longer current. Every accepted update
   * increments the version; an update without changes is not audited.
   */
  update(caller: Caller, team_id: string, version: number, changes: UpdateTeam): Promise<Team> {
    const { store, clock, membership, nodes } = this.#options;
    return store.write(async (tx) => {
      const row = await requireTeam(tx, caller, 'team.change', team_id);
      if (row.version !== version) throw problems.teamChanged();
      const { name, key, description, spec, human_members } = changes;
      const before = await record(tx, row);
      await assertUnused(tx, {
        name: name === row.name ? undefined : name,
        key: key === row.key ? undefined : key,
      });
      await updateTeam(tx, row.num, {
        ...(name !== undefined && { name }),
        ...(key !== undefined && { key }),
        ...(description !== undefined && { description }),
        ...(spec !== undefined && changedSpec(nodes, row, spec, caller)),
        version: version + 1,
        updated_at: clock.now(),
      });
      if (human_members !== undefined) await putHumans(tx, row.num, await this.#humans(tx, human_members));
      await membership.changed(tx, row.num);
      const after = await record(tx, (await findTeam(tx, team_id))!);
      const changed_keys = Object.keys(changes) as (keyof UpdateTeam)[];
      const changed = changed_keys.filter((key) => !isDeepStrictEqual(before[key], after[key]));
      if (changed.length > 0) {
        const humans = human_members && { human_members };
        await this.#audit(tx, caller, 'team_updated', row, { version: version + 1, changed, ...humans });
      }
      return after;
    });
  }

  /** Deletes the team with its runs. Throws a 409 while one of its runs is open. */
  async delete(caller: Caller, team_id: string): Promise<void> {
    const { store, membership, outbox, extensions } = this.#options;
    await store.write(async (tx) => {
      const row = await requireTeam(tx, caller, 'team.change', team_id);
      // The team's human members can see it, so they get "forbidden" instead of "not found".
      authorize(caller, 'team.delete', await teamResource(tx, row), problems.notAllowed);
      if (await extensions.hasOpenRuns(tx, row.num)) throw problems.teamHasRuns();
      await deleteTeam(tx, row.num);
      for (const node_id of [MAIN_NODE, ...(await nodeIds(tx))]) {
        await outbox.enqueue(tx, node_id, `${team_id} ${node_id}`, 'forget_owner', { owner_id: team_id });
      }
      await membership.changed(tx, row.num);
      await this.#audit(tx, caller, 'team_deleted', row, {});
    });
  }

  /** Resolves usernames to user ids. Throws `unknown user: <username>`. */
  async #humans(tx: Tx, usernames: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const username of new Set(usernames)) {
      const user = await findUserByName(tx, username);
      if (!user) throw invalid(`unknown user: ${username}`, 'unknown_user');
      ids.push(user.id);
    }
    return ids;
  }

  async #audit(
    tx: Tx,
    { user_id, ip }: Caller,
    event: AuditEvent,
    { id, name }: TeamRow,
    details: object,
  ): Promise<void> {
    await this.#options.audit.record(tx, { event, user_id, ip, details: { team_id: id, name, ...details } });
  }
}

/** Throws a 409 if another team has the name or the key. */
async function assertUnused(reader: Reader, { name, key }: Pick<UpdateTeam, 'name' | 'key'>): Promise<void> {
  if (name !== undefined && (await isTeamName(reader, name))) throw problems.teamExists();
  if (key !== undefined && (await isTeamKey(reader, key))) throw problems.teamKeyExists();
}

/** Records who changed the definition: whose worktrees a run may use depends on it (`features/runs/launcher.ts`). */
function changedSpec(nodes: Nodes, row: TeamRow, input: SpecInput, caller: Caller): Partial<TeamRow> {
  const before: TeamSpec = JSON.parse(row.spec);
  const spec = storedSpec(nodes, input, before);
  if (isDeepStrictEqual(JSON.parse(spec), before)) return { spec };
  return { spec, spec_editors: JSON.stringify([...new Set([...parseEditors(row), editorId(caller)])]) };
}

/** A token with limits counts as a separate editor, so that its definitions do not get the access of its user. */
function editorId({ user_id, token_id, grant }: Caller): string {
  return grant?.limits ? token_id : user_id;
}

/** Throws a 400 if `env_keys` names a variable without a value, and `no_local_node`. */
function storedSpec(nodes: Nodes, input: SpecInput, before: TeamSpec | null): string {
  const { spec, fault } = restoreEnv(input, before);
  if (fault) throw invalid(`${fieldPath(['spec', ...fault.path])} ${fault.message}`);
  const members = spec.members.map(({ agent, ...member }) => ({
    ...member,
    agent: agent && { ...agent, node_id: nodes.choose(agent.node_id) },
  }));
  return JSON.stringify({ ...spec, members } satisfies TeamSpec);
}

async function record(reader: Reader, row: TeamRow): Promise<Team> {
  return toTeam(row, await listHumans(reader, row.num));
}
