/** HTTP handlers for teams: parse, call, shape the response. */
import { problems } from '../../core/problem.ts';
import type { Handlers } from '../../server/call.ts';
import { asList } from '../../server/list.ts';
import type { Teams } from './service.ts';

type TeamOperations = 'listTeams' | 'createTeam' | 'getTeam' | 'updateTeam' | 'deleteTeam';

export function teamHandlers(teams: Teams): Pick<Handlers, TeamOperations> {
  return {
    listTeams: async ({ caller, query }) => asList(query, await teams.list(caller, query)),
    createTeam: async ({ caller, body, idempotency_key }) => {
      const team = await teams.create(caller, body, idempotency_key);
      return { location: `/api/teams/${team.id}`, body: team };
    },
    getTeam: ({ caller, params }) => teams.get(caller, params.team_id),
    updateTeam: ({ caller, params, body, headers }) => {
      const { version = parseVersion(headers['if-match']), ...changes } = body;
      if (version === undefined) throw problems.versionRequired();
      return teams.update(caller, params.team_id, version, changes);
    },
    deleteTeam: async ({ caller, params }) => {
      await teams.delete(caller, params.team_id);
      return undefined;
    },
  };
}

/** `"<version>"`, with or without quotes. */
function parseVersion(header: string | undefined): number | undefined {
  const digits = /^"?(\d{1,15})"?$/.exec(header?.trim() ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}
