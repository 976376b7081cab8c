/**
 * One elicitation: the form that an agent asks a person to fill in, or the URL that it asks a person to open, with the
 * agent's name, its message and ways to decline. A URL is shown in full, its host first, and opens only on a click.
 */
import { Link } from '@tanstack/react-router';
import { Check, CircleSlash, ExternalLink, SquarePen } from 'lucide-react';
import { type FormEvent, memo, useEffect, useId, useRef, useState } from 'react';
import { escapeHidden } from '../../core/visible.ts';
import type { AgentRecord, ElicitationRecord } from '../api/queries.ts';
import { Button, buttonClass } from '../ui/button.tsx';
import { useDraft } from '../ui/drafts.ts';
import { useOnline } from '../ui/online.ts';
import { ActionError } from '../ui/states.tsx';
import { Ago } from '../ui/time.tsx';
import { Truncated } from '../ui/truncated.tsx';
import { CardBar, CardBody, CardFrame } from '../waiting/card-frame.tsx';
import { useReply } from './answer.ts';
import { FormControl } from './fields.tsx';
import { buildContent, fieldProblem, readValues, unreadableProblem } from './form.ts';
import { getTitle, outcomeText } from './text.ts';

export interface ElicitationCardProps {
  elicitation: ElicitationRecord;
  agent: AgentRecord | undefined;
  /** Shows the agent's name, if the card is not in its conversation. */
  named?: boolean | undefined;
  className?: string;
}

export const ElicitationCard = memo(function ElicitationCard({
  elicitation,
  agent,
  named,
  className,
}: ElicitationCardProps) {
  const id = useId();
  const draft = useDraft(`elicitation.${elicitation.id}`);
  const [text, setText] = draft;
  const reply = useReply(elicitation.id, () => setText(''));
  const open = elicitation.status === 'pending';
  // A settled form no longer needs its draft, even if it was answered elsewhere.
  useEffect(() => {
    if (!open && text !== '') setText('');
  }, [open, text, setText]);
  const title = escapeHidden(getTitle(elicitation));
  return (
    <CardFrame
      card={elicitation.id}
      open={open}
      answered={reply.isPending || reply.isSuccess}
      data-elicitation={elicitation.id}
      {...(open ? { 'aria-labelledby': id } : { 'aria-label': `${title}: ${outcomeText(elicitation)}` })}
      {...(className && { className })}
    >
      {open ? (
        <OpenBody {...{ id, elicitation, agent, named, draft, reply }} />
      ) : (
        <Settled {...{ elicitation, agent, named }} />
      )}
    </CardFrame>
  );
});

type Replying = ReturnType<typeof useReply>;
/** The values of the form until they are sent. */
type Draft = ReturnType<typeof useDraft>;

type BodyOf = Pick<ElicitationCardProps, 'elicitation' | 'agent' | 'named'>;

function OpenBody({
  id,
  elicitation,
  agent,
  named,
  draft,
  reply,
}: BodyOf & { id: string; draft: Draft; reply: Replying }) {
  const online = useOnline();
  const { message, form, url } = elicitation;
  const Icon = url === null ? SquarePen : ExternalLink;
  const form_id = useId();
  return (
    <>
      <CardBody>
        <header className="flex flex-wrap items-center gap-x-2 text-sm">
          <span className="inline-flex items-center gap-1 font-medium text-needs">
            <Icon aria-hidden className="size-3.5" /> {url === null ? 'Form' : 'Link'}
          </span>
          {named && <AgentName elicitation={elicitation} agent={agent} />}
          <span className="ml-auto text-muted">
            asked <Ago at={elicitation.created_at} />
          </span>
        </header>
        <p id={id} className="whitespace-pre-wrap break-words font-medium">
          <bdi>{escapeHidden(message || getTitle(elicitation))}</bdi>
        </p>
        {form !== null && <FormBody {...{ elicitation, draft, reply, online, form_id }} />}
        {url !== null && <UrlBody url={url} reply={reply} />}
      </CardBody>
      <CardBar>
        <div className="flex flex-wrap gap-2">
          {form !== null && (
            <Button type="submit" form={form_id} variant="primary" busy={reply.isPending} disabled={!online}>
              Send
            </Button>
          )}
          {url !== null && <OpenLink url={url} reply={reply} online={online} />}
          <Refusals reply={reply} online={online} />
        </div>
        {!online && <p className="text-muted">You are offline. Answer when you are back online.</p>}
      </CardBar>
    </>
  );
}

interface BodyProps {
  reply: Replying;
  online: boolean;
}

function FormBody({
  elicitation,
  draft: [text, setText],
  reply,
  online,
  form_id,
}: BodyProps & { elicitation: ElicitationRecord; draft: Draft; form_id: string }) {
  const { title, description, fields } = elicitation.form!;
  const values = readValues(fields, text);
  const form = useRef<HTMLFormElement>(null);
  const message = reply.error instanceof Error ? reply.error.message : '';
  const [unreadable, setUnreadable] = useState<readonly number[]>([]);
  const problems = fields.map((field, at) =>
    unreadable.includes(at) ? unreadableProblem(field) : fieldProblem(field, message),
  );
  const placed = problems.some((problem) => problem !== null);
  useEffect(() => {
    if (reply.error) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [reply.error]);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    // The value of such a control is empty, although it shows a text, so sending it would omit what the user entered.
    const wrong = fields.flatMap((_, at) => (findControl(form.current, at)?.validity.badInput ? at : []));
    setUnreadable(wrong);
    if (wrong.length > 0) findControl(form.current, wrong[0]!)?.focus();
    else if (online && !reply.isPending)
      reply.mutate({ action: 'accept', content: buildContent(fields, values) });
  };
  return (
    // The service validates, and its errors are shown at the field.
    <form
      ref={form}
      id={form_id}
      noValidate
      onSubmit={onSubmit}
      className="flex min-w-0 max-w-xl flex-col gap-3"
    >
      {title !== null && title !== elicitation.message && (
        <p className="break-words font-medium">{escapeHidden(title)}</p>
      )}
      {description !== null && (
        <p className="whitespace-pre-wrap break-words text-muted">{escapeHidden(description)}</p>
      )}
      {fields.map((field, at) => (
        <FormControl
          key={field.name}
          field={field}
          name={controlName(at)}
          value={values[at]!}
          error={problems[at]!}
          onChange={(value) => {
            setText(JSON.stringify(values.with(at, value)));
            setUnreadable(unreadable.filter((one) => one !== at));
          }}
        />
      ))}
      <p className="text-muted text-sm">
        What you enter goes to the agent and into its log. Never enter passwords or keys.
      </p>
      {!placed && <ActionError error={reply.error} />}
    </form>
  );
}

/** Not the field's own name, for which the browser could offer other values. */
function controlName(at: number): string {
  return `field-${at}`;
}

function findControl(form: HTMLFormElement | null, at: number): HTMLInputElement | null {
  const control = form?.elements.namedItem(controlName(at));
  return control instanceof HTMLInputElement ? control : null;
}

function UrlBody({ url, reply }: Pick<BodyProps, 'reply'> & { url: string }) {
  return (
    <>
      <Address url={url} />
      <p className="text-muted text-sm">
        The agent chose this address and svc has not checked it. Open it only if you trust this host.
      </p>
      <ActionError error={reply.error} />
    </>
  );
}

/** The mouse button that opens a link in a new tab. The right one opens a menu. */
const MIDDLE = 1;

function OpenLink({ url, reply, online }: BodyProps & { url: string }) {
  if (!online || !isWeb(url)) return null;
  const open = () => {
    if (!reply.isPending) reply.mutate({ action: 'accept' });
  };
  return (
    <a
      href={url}
      target="_blank"
      rel="noopener noreferrer"
      onClick={open}
      onAuxClick={({ button }) => {
        if (button === MIDDLE) open();
      }}
      className={buttonClass('primary')}
    >
      <ExternalLink aria-hidden /> Open
      <span className="sr-only"> {new URL(url).host} in a new tab</span>
    </a>
  );
}

function Refusals({ reply, online }: BodyProps) {
  const disabled = !online || reply.isPending;
  return (
    <>
      <Button disabled={disabled} onClick={() => reply.mutate({ action: 'decline' })}>
        Decline
      </Button>
      <Button variant="quiet" disabled={disabled} onClick={() => reply.mutate({ action: 'cancel' })}>
        Cancel
      </Button>
    </>
  );
}

function Address({ url }: { url: string }) {
  return (
    <p className="min-w-0 rounded bg-surface px-2 py-1">
      <span className="block break-all font-medium">{new URL(url).host}</span>
      <span className="block break-all font-mono text-sm">{escapeHidden(url)}</span>
    </p>
  );
}

/** The service stores only these schemes, but the link does not rely on that. */
function isWeb(url: string): boolean {
  return /^https?:\/\//.test(url);
}

function AgentName({ elicitation, agent }: Pick<ElicitationCardProps, 'elicitation' | 'agent'>) {
  const { agent_id } = elicitation;
  return (
    <Link
      to="/agents/$agent_id"
      params={{ agent_id }}
      className="tap inline-flex min-w-0 items-center font-medium hover:underline"
    >
      <span className="break-all">{escapeHidden(agent?.name ?? agent_id)}</span>
    </Link>
  );
}

function Settled({ elicitation, agent, named }: BodyOf) {
  const { url, status, completed_at } = elicitation;
  const message = outcomeText(elicitation);
  const title = escapeHidden(getTitle(elicitation));
  const Icon = status === 'accepted' ? Check : CircleSlash;
  return (
    <>
      <Icon aria-hidden className="size-3.5 shrink-0 text-muted" />
      {named && <AgentName elicitation={elicitation} agent={agent} />}
      <span className="min-w-0 break-words">{escapeHidden(message)}</span>
      <Truncated className="min-w-0 text-muted" title={title}>
        {title}
      </Truncated>
      {status === 'accepted' && url !== null && completed_at === null && isWeb(url) && (
        <a
          href={url}
          target="_blank"
          rel="noopener noreferrer"
          className="tap inline-flex items-center break-all text-accent underline"
        >
          Open {new URL(url).host} again
        </a>
      )}
    </>
  );
}
