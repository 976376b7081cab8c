/** The pages that create and edit a team. */
import { useQuery } from '@tanstack/react-query';
import { useParams, useSearch } from '@tanstack/react-router';
import { teamQuery } from '../../api/queries.ts';
import { Screen } from '../../ui/screen.tsx';
import { QueryState } from '../../ui/states.tsx';
import { type Doc, formatDocument, write } from './document.ts';
import { Editor, teamDraft } from './editor.tsx';
import { blank, templates } from './templates.ts';

const teams_page = { to: '/teams', label: 'teams' };

export function NewTeam() {
  const { template } = useSearch({ from: '/app/teams/new' });
  const found = templates.find(({ id }) => id === template);
  return (
    <Editor
      key={template}
      title="New team"
      draft={`team.new.${found?.id ?? 'blank'}`}
      text={write((found?.team ?? blank) as unknown as Doc)}
      team={null}
    />
  );
}

export function EditTeam() {
  const { team_id } = useParams({ from: '/app/teams/$team_id/edit' });
  const team = useQuery(teamQuery(team_id));
  if (!team.data) {
    return (
      <Screen title="Edit team" back={teams_page}>
        <QueryState read={team} back={teams_page}>
          {() => null}
        </QueryState>
      </Screen>
    );
  }
  return (
    <Editor
      key={team_id}
      title={`Edit ${team.data.name}`}
      draft={teamDraft(team_id)}
      text={formatDocument(team.data)}
      team={team.data}
    />
  );
}
