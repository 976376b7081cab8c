/** The form that starts a run: title and prompt, or any JSON. Both edit one document, kept as a draft until the start. */
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useAct } from '../../api/act.ts';
import { call } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { putResponse } from '../../api/put-response.ts';
import type { TeamRecord } from '../../api/queries.ts';
import { Button } from '../../ui/button.tsx';
import { useDraft } from '../../ui/drafts.ts';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { useIsHere } from '../../ui/here.ts';
import { isModEnter, MOD } from '../../ui/keys.ts';
import { useOnline } from '../../ui/online.ts';
import { ActionError } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { CallsHint } from './calls-hint.tsx';
import { type Doc, getText, parse, put, write } from './document.ts';

export function StartRun({ team }: { team: TeamRecord }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const isHere = useIsHere();
  const online = useOnline();
  const [draft, setDraft, last] = useDraft(`run.${team.id}`);
  const [asJson, setAsJson] = useState(false);
  const text = draft || '{}';
  const { doc, fault } = parse(text);
  const act = useAct(
    (input: Doc, idempotency_key) =>
      call('createRun', { params: { team_id: team.id }, body: { input }, idempotency_key }),
    (run, input) => {
      const sent = JSON.stringify(input);
      setDraft((now) => (JSON.stringify(parse(now || '{}').doc) === sent ? '' : now));
      putResponse(queries, { one: keys.run(run.id) }, run);
      void queries.invalidateQueries({ queryKey: keys.runs(team.id) });
      if (!isHere()) return showToast(team.name, `Run ${run.number} was started`);
      void navigate({ to: '/teams/$team_id/runs/$run_id', params: { team_id: team.id, run_id: run.id } });
    },
    last,
  );
  const start = () => {
    if (doc && !act.isPending) act.mutate(doc);
  };
  const set = (field: string, value: string) => {
    if (doc) setDraft(write(put(doc, [field], value === '' ? undefined : value)));
  };
  const json = asJson || doc === null;
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        start();
      }}
      onKeyDown={(event) => {
        if (isModEnter(event.nativeEvent)) {
          event.preventDefault();
          start();
        }
      }}
    >
      <CallsHint spec={team.spec} />
      {json ? (
        <Field label="Input (JSON)" error={fault}>
          {(control) => (
            <textarea
              {...control}
              value={text}
              onChange={(event) => setDraft(event.target.value)}
              rows={8}
              spellCheck={false}
              className={`${inputClass} font-mono`}
            />
          )}
        </Field>
      ) : (
        <>
          <TextField label="Title" value={getText(doc, ['title'])} onText={(text) => set('title', text)} />
          <Field label="Prompt">
            {(control) => (
              <textarea
                {...control}
                value={getText(doc, ['prompt'])}
                onChange={(event) => set('prompt', event.target.value)}
                rows={4}
                className={inputClass}
              />
            )}
          </Field>
        </>
      )}
      <ActionError error={act.error} />
      <div className="flex flex-wrap items-center justify-between gap-2">
        <Button variant="quiet" disabled={doc === null} onClick={() => setAsJson(!asJson)}>
          {json ? 'Edit as form' : 'Edit as JSON'}
        </Button>
        <Button
          type="submit"
          variant="primary"
          busy={act.isPending}
          disabled={doc === null || !online}
          title={online ? `${MOD}⏎` : 'You are offline'}
        >
          {act.isPending ? 'Starting…' : 'Start run'}{' '}
          <kbd className="font-sans text-xs pointer-coarse:hidden">{MOD}⏎</kbd>
        </Button>
      </div>
    </form>
  );
}
