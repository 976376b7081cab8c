/** Teams: their definitions and members. */
import type { Core, Feature } from '../feature.ts';
import { requireTeam } from './access.ts';
import { teamHandlers } from './http.ts';
import { Membership } from './membership.ts';
import { Teams } from './service.ts';

export interface TeamsFeature extends Feature {
  membership: Membership;
}

export async function openTeams(core: Core): Promise<TeamsFeature> {
  const membership = await Membership.open(core.store);
  const teams = new Teams({ ...core, membership });
  return {
    name: 'teams',
    membership,
    routes: teamHandlers(teams),
    resources: {
      team_id: (caller, action, { team_id }) =>
        core.store.read((reader) => requireTeam(reader, caller, action, team_id!)),
    },
  };
}
