/** A form that calls an operation, and its response. */
import { type FormEvent, useState } from 'react';
import { errorMessage } from '../../api/client.ts';
import { useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Field, inputClass, TextField } from '../../ui/field.tsx';
import { Select } from '../../ui/select.tsx';
import { type Description, type Operation, type Parameter, typeText } from './description.ts';
import { Prose } from './prose.tsx';
import { buildRequest, type Filled, formatCurl, type Request } from './request.ts';
import { type Sent, useSending } from './sending.ts';

export interface OperationProps {
  api: Description;
  operation: Operation;
  filled: Filled;
  onFill: (filled: Filled) => void;
  /** An API token to send instead of the session's; empty: none. */
  token: string;
  onToken: (token: string) => void;
}

export function TryIt({ api, operation, filled, onFill, token, onToken }: OperationProps) {
  const { spec, method } = operation;
  const { sent, send, stop } = useSending(operation, token);
  const [wrong, setWrong] = useState<string | null>(null);
  const going = sent?.state === 'sending' || sent?.state === 'reading';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    let request: Request;
    try {
      request = buildRequest(operation, filled);
    } catch (error) {
      setWrong(errorMessage(error));
      return;
    }
    setWrong(null);
    void send(request);
  };
  let curl: string | null = null;
  try {
    curl = formatCurl(location.origin, method, buildRequest(operation, filled));
  } catch {
    // The form is not complete yet.
  }
  return (
    <section className="flex flex-col gap-3">
      <h3 className="font-semibold text-prose">Try it</h3>
      <form onSubmit={submit} className="flex flex-col gap-3">
        {spec.parameters.length > 0 && (
          <div className="grid gap-3 sm:grid-cols-2">
            {spec.parameters.map((parameter) => (
              <ParameterField
                key={`${parameter.in} ${parameter.name}`}
                api={api}
                parameter={parameter}
                value={filled.values[parameter.name] ?? ''}
                onChange={(value) =>
                  onFill({ ...filled, values: { ...filled.values, [parameter.name]: value } })
                }
              />
            ))}
          </div>
        )}
        {spec.requestBody && (
          <Field label="Body (JSON)">
            {(control) => (
              <textarea
                {...control}
                spellCheck={false}
                rows={Math.min(16, Math.max(3, filled.body.split('\n').length))}
                value={filled.body}
                onChange={(event) => onFill({ ...filled, body: event.target.value })}
                className={`${inputClass} font-mono`}
              />
            )}
          </Field>
        )}
        {wrong && (
          <p role="alert" className="text-failed">
            {wrong}
          </p>
        )}
        <div className="flex flex-wrap items-center gap-2">
          <Button type="submit" variant={method === 'DELETE' ? 'danger' : 'primary'} busy={going}>
            Send
          </Button>
          {going && <Button onClick={stop}>Stop</Button>}
          {curl && <Copy text={curl} label="Copy as curl" />}
        </div>
        {spec.security?.length !== 0 && <TokenField token={token} onToken={onToken} />}
      </form>
      {sent && <ResponseView sent={sent} />}
    </section>
  );
}

/** Without another token, requests have the rights of the signed-in user. */
function TokenField({ token, onToken }: Pick<OperationProps, 'token' | 'onToken'>) {
  const user = useSession()?.user;
  return (
    <Disclosure
      open={!user || token !== ''}
      summary={
        token !== '' ? 'Sent with an API token' : user ? `Sent as ${user.username}` : 'Sent without a token'
      }
    >
      <TextField
        label="API token"
        hint="Used instead of your session. Kept in memory until you leave this page."
        type="password"
        autoComplete="off"
        value={token}
        onText={(text) => onToken(text.trim())}
        className="max-w-sm pt-1"
      />
    </Disclosure>
  );
}

function ParameterField({
  api,
  parameter,
  value,
  onChange,
}: {
  api: Description;
  parameter: Parameter;
  value: string;
  onChange: (value: string) => void;
}) {
  const { name, in: place, required, description, schema } = parameter;
  const choices = schema.enum ?? (schema.type === 'boolean' ? ['true', 'false'] : null);
  return (
    <Field
      label={name}
      hint={
        <>
          {place}, {typeText(api, schema)}
          {required && <span className="text-warning"> required</span>}
          {description && (
            <>
              . <Prose text={description} />
            </>
          )}
        </>
      }
    >
      {(control) =>
        choices ? (
          <Select
            {...control}
            required={required}
            choices={['', ...choices.map(String)].map((each) => ({ value: each, label: each || '–' }))}
            value={value}
            onChange={onChange}
          />
        ) : (
          <input
            {...control}
            required={required}
            spellCheck={false}
            autoComplete="off"
            value={value}
            onChange={(event) => onChange(event.target.value)}
            className={`${inputClass} font-mono`}
          />
        )
      }
    </Field>
  );
}

const states: Record<Sent['state'], string> = {
  sending: 'Sending…',
  reading: 'Receiving…',
  done: '',
  stopped: 'Stopped.',
  failed: '',
};

function ResponseView({ sent }: { sent: Sent }) {
  const { state, status, status_text, ms, headers, text, truncated, error } = sent;
  const good = status !== undefined && status < 400;
  return (
    <div className="flex min-w-0 flex-col gap-2 rounded-lg border border-line p-3">
      <p role="status" className="flex flex-wrap gap-x-3">
        {status !== undefined && (
          <b className={good ? 'text-completed' : 'text-failed'}>
            {status} {status_text}
          </b>
        )}
        {ms !== undefined && <span className="text-muted">{ms} ms</span>}
        {error && <span className="text-failed">{error}</span>}
        <span className="text-muted">{states[state]}</span>
      </p>
      {headers && headers.length > 0 && (
        <Disclosure summary={`${headers.length} headers`}>
          <dl className="font-mono text-sm">
            {headers.map(([name, value]) => (
              <div key={name} className="flex gap-2">
                <dt className="shrink-0 text-muted">{name}</dt>
                <dd className="min-w-0 break-all">{value}</dd>
              </div>
            ))}
          </dl>
        </Disclosure>
      )}
      {text !== '' && (
        <>
          <div className="flex items-center justify-between gap-2 text-muted text-sm">
            <span>{truncated && 'Only the end of a long response is shown.'}</span>
            <Copy text={text} />
          </div>
          <section
            aria-label="Response"
            // biome-ignore lint/a11y/noNoninteractiveTabindex: it can be scrolled with the keyboard
            tabIndex={0}
            className="scroll-y max-h-[60dvh] rounded bg-surface p-2"
          >
            <pre className="whitespace-pre-wrap break-all font-mono text-sm">{text}</pre>
          </section>
        </>
      )}
    </div>
  );
}
