/**
 * The team editor: a form and a JSON field that edit the same text, and a graph of its steps. The text is kept as a draft
 * until it is saved, through reloads, errors and version conflicts.
 */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useDeferredValue, useEffect, useRef, useState } from 'react';
import { MAIN_NODE } from '../../../core/node.ts';
import { useAct } from '../../api/act.ts';
import { call, errorMessage, newKey } from '../../api/client.ts';
import { defaultNode } from '../../api/default-node.ts';
import { keys } from '../../api/keys.ts';
import { nodesQuery, type TeamRecord } from '../../api/queries.ts';
import { GRAPH_STEPS_MAX, StepsGraph } from '../../graph/lazy.tsx';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { storeDraft, useDraft } from '../../ui/drafts.ts';
import { inputClass } from '../../ui/field.tsx';
import { useIsHere, useIsShown } from '../../ui/here.ts';
import { useOnline } from '../../ui/online.ts';
import { Screen } from '../../ui/screen.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { showToast } from '../../ui/toast.tsx';
import { CallsHint } from './calls-hint.tsx';
import { Conflict } from './conflict.tsx';
import { type Doc, drawable, formatDocument, type Path, parse, placeMembers, write } from './document.ts';
import { afterCreation, readDraft, type Saving, toDraft, unsaved } from './draft.ts';
import { type Fault, findFault, pathInMessage, pathKey } from './faults.ts';
import { TeamForm } from './form.tsx';

const panes = [
  { value: 'form', label: 'Form' },
  { value: 'json', label: 'JSON' },
] as const;

interface ShownFault extends Fault {
  /** The form has a field with this path, which shows the message. */
  has_field: boolean;
}

/** The key of the draft of a team that exists. */
export const teamDraft = (team_id: string) => `team.${team_id}`;

export function Editor({
  title,
  draft,
  text: begun,
  team,
}: {
  title: string;
  draft: string;
  /** The text if there is no draft. */
  text: string;
  team: TeamRecord | null;
}) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const isHere = useIsHere();
  const isShown = useIsShown();
  const online = useOnline();
  const { data: nodes = [] } = useQuery(nodesQuery);
  const [held, setHeld, last] = useDraft(draft);
  const parsed_draft = readDraft(held);
  const version = parsed_draft?.version ?? team?.version ?? null;
  const text = parsed_draft?.text ?? begun;
  const [wasRestored] = useState(parsed_draft !== null);
  const [pane, setPane] = useState<'form' | 'json'>('form');
  const [fault, setFault] = useState<ShownFault | null>(null);
  const [theirs, setTheirs] = useState<TeamRecord | null>(null);
  const [mine, setMine] = useState<string | null>(null);
  const json = useRef<HTMLTextAreaElement>(null);

  const parsed = parse(text);
  const lastGood = useRef<Doc>({});
  if (parsed.doc) lastGood.current = parsed.doc;
  const doc = parsed.doc ?? lastGood.current;

  const setText = (next: string, from = version) => {
    setHeld((now) => toDraft({ text: next, version: from, id: readDraft(now)?.id ?? newKey() }));
    setFault(null);
  };
  const discard = () => {
    setHeld('');
    setFault(null);
  };

  const save = useAct(
    (saving: Saving, idempotency_key) => send(team, placed(saving, nodes), idempotency_key),
    (saved, sent) => {
      queries.setQueryData(keys.team(saved.id), saved);
      // The records of tasks contain the key.
      void queries.invalidateQueries(saved.key === team?.key ? { queryKey: keys.teams } : {});
      // Keep what was typed in the meantime, also after leaving this page and coming back: it has not been saved.
      let rest = '';
      setHeld((now) => {
        if (team) {
          rest = unsaved(now, sent.text, saved.version);
          return rest;
        }
        const { next, ...created } = afterCreation(now, sent, saved.version);
        rest = created.rest;
        return next;
      });
      if (rest !== '' && !team) storeDraft(teamDraft(saved.id), rest);
      setFault(null);
      if (!isHere() || !isShown())
        return showToast(saved.name, team ? 'The team was saved' : 'The team was created');
      const params = { team_id: saved.id };
      if (rest === '') void navigate({ to: '/teams/$team_id', params });
      else if (!team) void navigate({ to: '/teams/$team_id/edit', params, replace: true });
    },
    // A change of a team needs no key: it names the version.
    team ? undefined : last,
  );
  const press = (from = version) => {
    if (save.isPending) return;
    const saving = { text, version: from, id: parsed_draft?.id ?? newKey() };
    // What is typed while a team is created belongs to this draft, also if it is the first change.
    if (!team) setHeld(toDraft(saving));
    save.mutate(saving, {
      onError: async (error) => {
        if (team && (error as { code?: string }).code === 'team_changed') {
          await call('getTeam', { params: { team_id: team.id } }).then(setTheirs, (failure) =>
            setFault(findField([], errorMessage(failure))),
          );
          return;
        }
        const { doc: sent } = parse(saving.text);
        const path = sent && pathInMessage(errorMessage(error), sent);
        setFault(findField(path ?? [], errorMessage(error)));
      },
    });
  };

  // Focus the field that the error is about.
  useEffect(() => {
    if (fault && fault.path.length > 0) showPlace(fault, json.current, setPane);
  }, [fault]);

  const shown = useDeferredValue(doc);
  const steps = drawable(shown);
  const hint = fault === null && parsed.doc ? findFault(doc) : null;
  const changed = held !== '' && text !== begun;

  return (
    <Screen
      title={title}
      back={team === null ? { to: '/teams', label: 'teams' } : { to: `/teams/${team.id}`, label: team.name }}
      actions={
        changed && (
          <Button variant="quiet" onClick={discard}>
            Discard changes
          </Button>
        )
      }
      primary={
        <Button
          variant="primary"
          busy={save.isPending}
          disabled={parsed.doc === null || theirs !== null || !online}
          title={online ? undefined : 'You are offline'}
          onClick={() => press()}
        >
          {save.isPending ? 'Saving…' : team ? 'Save' : 'Create team'}
        </Button>
      }
      toolbar={
        // With a constant height, so that nothing below moves when a message appears.
        <div className="tap flex w-full flex-wrap items-center gap-2">
          <Segmented label="Edit as" segments={panes} value={pane} onValue={setPane} className="lg:hidden" />
          <p aria-live="polite" className="min-w-0 flex-1 break-words text-sm">
            {fault && (!fault.has_field || pane === 'json') ? (
              <span role="alert" className="text-failed">
                {fault.message}
              </span>
            ) : hint ? (
              <span className="text-muted">Not valid yet: {hint.message}</span>
            ) : wasRestored && changed ? (
              <span className="text-muted">Your unsaved changes were restored.</span>
            ) : (
              <span className="text-muted max-lg:hidden">
                The form and the JSON are the same definition. A change in one changes the other.
              </span>
            )}
          </p>
          {hint && (
            <Button variant="quiet" onClick={() => showPlace(hint, json.current, setPane)}>
              Show
            </Button>
          )}
          {mine !== null && (
            <Button
              onClick={() => {
                setText(mine);
                setMine(null);
              }}
            >
              Restore my version
            </Button>
          )}
        </div>
      }
    >
      <CallsHint spec={shown.spec} className="m-3 mb-0 shrink-0 md:mx-4" />
      {theirs && (
        <Conflict
          theirs={theirs}
          mine={text}
          busy={save.isPending}
          onKeep={() => {
            setText(text, theirs.version);
            queries.setQueryData(keys.team(theirs.id), theirs);
            setTheirs(null);
            press(theirs.version);
          }}
          onTake={() => {
            setMine(text);
            setText(formatDocument(theirs), theirs.version);
            queries.setQueryData(keys.team(theirs.id), theirs);
            setTheirs(null);
          }}
        />
      )}
      <div className="grid min-w-0 grid-cols-1 gap-4 p-3 md:px-4 lg:grid-cols-2">
        <div className={cx('min-w-0', pane !== 'form' && 'max-lg:hidden')}>
          {parsed.fault !== null && (
            <p className="mb-2 rounded-md bg-marked px-3 py-2">
              The JSON is invalid. Correct it to use the form.
            </p>
          )}
          <TeamForm
            doc={doc}
            disabled={parsed.doc === null}
            fault={fault}
            onChange={(next) => setText(write(next))}
          />
        </div>
        <div className={cx('flex min-w-0 flex-col gap-3 lg:sticky lg:top-3 lg:self-start')}>
          <section
            aria-label="Step graph"
            className={cx('min-w-0 rounded-md border border-line', pane === 'json' && 'max-lg:hidden')}
          >
            {steps.length === 0 ? (
              <p className="px-3 py-6 text-center text-muted">No steps yet.</p>
            ) : steps.length > GRAPH_STEPS_MAX ? (
              <p className="px-3 py-6 text-center text-muted">{steps.length} steps are too many to draw.</p>
            ) : (
              <StepsGraph steps={steps} label="Step graph" />
            )}
          </section>
          <div className={cx('flex min-w-0 flex-col gap-1', pane !== 'json' && 'max-lg:hidden')}>
            <label htmlFor="team-json" className="font-medium text-sm">
              Definition (JSON)
            </label>
            {text.includes('"env_keys"') && (
              <p className="text-muted text-sm">
                Environment values are hidden. A variable in <code className="font-mono">env_keys</code> keeps
                its value. To change it, set it in <code className="font-mono">env</code>.
              </p>
            )}
            <textarea
              id="team-json"
              ref={json}
              value={text}
              onChange={(event) => setText(event.target.value)}
              spellCheck={false}
              autoComplete="off"
              wrap="off"
              rows={24}
              aria-invalid={parsed.fault === null ? undefined : true}
              aria-describedby={parsed.fault === null ? undefined : 'team-json-fault'}
              className={cx(inputClass, 'overflow-x-auto font-mono text-sm')}
            />
            {parsed.fault !== null && (
              <p id="team-json-fault" role="status" className="break-words text-failed text-sm">
                {parsed.fault}
              </p>
            )}
          </div>
        </div>
      </div>
    </Screen>
  );
}

function findField(path: Path, message: string): ShownFault {
  return { path, message, has_field: path.length > 0 && findControl(path) !== null };
}

function findControl(path: Path): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-path="${CSS.escape(pathKey(path))}"]`);
}

/** Without a main node, the service has no default for the nodes of members if there are several. */
function placed(saving: Saving, nodes: readonly { id: string }[]): Saving {
  const { doc } = parse(saving.text);
  const node_id = defaultNode(nodes);
  return doc === null || node_id === MAIN_NODE
    ? saving
    : { ...saving, text: write(placeMembers(doc, node_id)) };
}

function send(team: TeamRecord | null, { text, version }: Saving, idempotency_key: string) {
  // The service validates the definition.
  const body = JSON.parse(text) as never;
  if (team === null) return call('createTeam', { body, idempotency_key });
  return call('updateTeam', {
    params: { team_id: team.id },
    body: { ...(body as object), version: version ?? team.version },
  });
}

/** Focuses the control of the field or of its closest parent; the JSON field if the form has none. */
function showPlace(
  { path }: Fault,
  json: HTMLTextAreaElement | null,
  setPane: (pane: 'form' | 'json') => void,
): void {
  for (let length = path.length; length > 0; length--) {
    const control = findControl(path.slice(0, length));
    if (!control) continue;
    setPane('form');
    control.closest('details')?.setAttribute('open', '');
    // Wait a frame, because the control may have been hidden.
    requestAnimationFrame(() => {
      control.scrollIntoView({ block: 'center' });
      control.focus();
    });
    return;
  }
  setPane('json');
  requestAnimationFrame(() => json?.focus());
}
