/** Teams as people see them: definitions with a version each, and the humans who share them. */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import { limits } from '../../base/limits.ts';
import { fieldPath } from '../../contract/validate.ts';
import type { AuditEvent } from '../../domain/audit.ts';
import { authorize, viewOf } from '../../domain/policy.ts';
import { invalid, problems } from '../../domain/problem.ts';
import type { AskedSpec, Team, TeamSpec } from '../../domain/team.ts';
import { withKeptEnv } from '../../domain/team-env.ts';
import type { Caller } from '../../domain/user.ts';
import { openRuns } from '../../store/runs.ts';
import type { Reader, Store, Tx } from '../../store/store.ts';
import {
  deleteTeam,
  findTeam,
  humansOf,
  insertTeam,
  isTeamName,
  listTeams,
  putHumans,
  type TeamRow,
  toTeam,
  updateTeam,
} from '../../store/teams.ts';
import type { Audit } from '../audit.ts';
import type { IdempotencyKeys } from '../idempotency.ts';
import { type Page, type PageRequest, page, readCursor } from '../page.ts';
import { teamResource } from '../resources.ts';
import { mustFindTeam } from './access.ts';
import type { Membership } from './membership.ts';

export interface TeamsOptions {
  store: Store;
  clock: Clock;
  audit: Audit;
  membership: Membership;
  idempotency: Pick<IdempotencyKeys, 'keepWith'>;
}

export interface CreateTeam {
  name: string;
  description: string;
  spec: AskedSpec;
  /** Usernames. */
  human_members: string[];
}

export type UpdateTeam = { [Key in keyof CreateTeam]?: CreateTeam[Key] | undefined };

export class Teams {
  readonly #options: TeamsOptions;

  constructor(options: TeamsOptions) {
    this.#options = options;
  }

  list(caller: Caller, request: PageRequest): Promise<Page<Team>> {
    authorize(caller, 'teams.list');
    const limit = request.limit ?? limits.page_items_default;
    const paged = request.limit !== undefined || request.cursor !== undefined;
    const before_num = readCursor(request.cursor, 'number')?.[0];
    return this.#options.store.read((reader) => {
      const rows = listTeams(reader, {
        view: viewOf(caller),
        before_num,
        limit: paged ? limit + 1 : undefined,
      });
      return page(
        rows,
        paged ? limit : rows.length,
        (row) => record(reader, row),
        (row) => [row.num],
      );
    });
  }

  get(caller: Caller, team_id: string): Promise<Team> {
    return this.#options.store.read((reader) =>
      record(reader, mustFindTeam(reader, caller, 'team.read', team_id)),
    );
  }

  async create(caller: Caller, asked: CreateTeam, idempotency_key: string | null): Promise<Team> {
    authorize(caller, 'teams.create');
    const { store, clock, membership, idempotency } = this.#options;
    const id = newId('team');
    return store.write((tx) => {
      if (isTeamName(tx, asked.name)) throw problems.teamExists();
      const now = clock.now();
      const num = insertTeam(tx, {
        ...{ id, name: asked.name, description: asked.description, spec: storedSpec(asked.spec, null) },
        ...{ version: 1, created_by: caller.user_id, created_at: now, updated_at: now },
      });
      putHumans(tx, num, this.#humans(tx, asked.human_members));
      membership.changed(tx, num);
      const row = findTeam(tx, id)!;
      this.#audit(tx, caller, 'team_created', row, { human_members: asked.human_members });
      const team = record(tx, row);
      if (idempotency_key !== null) {
        const answer = { status: 201, location: `/api/teams/${id}`, body: team };
        idempotency.keepWith(tx, caller, idempotency_key, answer);
      }
      return team;
    });
  }

  /**
   * `version`: that of the definition which the change was made from. Throws where it is another one by now. Every accepted
   * update raises the version; one whose fields equal the present values is not audited.
   */
  update(caller: Caller, team_id: string, version: number, changes: UpdateTeam): Promise<Team> {
    const { store, clock, membership } = this.#options;
    return store.write((tx) => {
      const row = mustFindTeam(tx, caller, 'team.change', team_id);
      if (row.version !== version) throw problems.teamChanged();
      const { name, description, spec, human_members } = changes;
      const before = record(tx, row);
      if (name !== undefined && name !== row.name && isTeamName(tx, name)) throw problems.teamExists();
      updateTeam(tx, row.num, {
        ...(name !== undefined && { name }),
        ...(description !== undefined && { description }),
        ...(spec !== undefined && { spec: storedSpec(spec, JSON.parse(row.spec)) }),
        version: version + 1,
        updated_at: clock.now(),
      });
      if (human_members !== undefined) putHumans(tx, row.num, this.#humans(tx, human_members));
      membership.changed(tx, row.num);
      const after = record(tx, findTeam(tx, team_id)!);
      const given = Object.keys(changes) as (keyof UpdateTeam)[];
      const changed = given.filter((key) => !isDeepStrictEqual(before[key], after[key]));
      if (changed.length > 0) {
        const humans = human_members && { human_members };
        this.#audit(tx, caller, 'team_updated', row, { version: version + 1, changed, ...humans });
      }
      return after;
    });
  }

  async delete(caller: Caller, team_id: string): Promise<void> {
    const { store, membership } = this.#options;
    await store.write((tx) => {
      const row = mustFindTeam(tx, caller, 'team.change', team_id);
      // Its humans see it, so that it is theirs to see that they may not.
      authorize(caller, 'team.delete', teamResource(tx, row), problems.notAllowed);
      if (openRuns(tx, row.num).length > 0) throw problems.teamHasRuns();
      deleteTeam(tx, row.num);
      membership.changed(tx, row.num);
      this.#audit(tx, caller, 'team_deleted', row, {});
    });
  }

  /** Ids of users. Throws `unknown user: <username>`. */
  #humans(tx: Tx, usernames: readonly string[]): string[] {
    return [...new Set(usernames)].map((username) => {
      const query = tx.sql.selectFrom('users').select('id').where('username', '=', username);
      const user = tx.get(query);
      if (!user) throw invalid(`unknown user: ${username}`, 'unknown_user');
      return user.id;
    });
  }

  #audit(tx: Tx, { user_id, ip }: Caller, event: AuditEvent, { id, name }: TeamRow, details: object): void {
    this.#options.audit.record(tx, { event, user_id, ip, details: { team_id: id, name, ...details } });
  }
}

/** Throws a 400 where `env_keys` names a variable that has no value. */
function storedSpec(asked: AskedSpec, before: TeamSpec | null): string {
  const { spec, fault } = withKeptEnv(asked, before);
  if (fault) throw invalid(`${fieldPath(['spec', ...fault.path])} ${fault.message}`);
  return JSON.stringify(spec);
}

function record(reader: Reader, row: TeamRow): Team {
  return toTeam(row, humansOf(reader, row.num));
}
