/** One operation: parameters, responses, and a form that calls it with the token of this page. */
import { h, prose } from './dom.js';
import { exampleOf, showSchema, typeText } from './schema.js';

const SHOWN_CHARS_MAX = 256 * 1024;

export function showOperation(api, operation, session) {
  const { method, path, spec } = operation;
  return h(
    'article',
    {},
    h('h2', { tabIndex: -1 }, spec.summary),
    h('p', {}, h('span', { class: 'method' }, method), ' ', h('code', {}, path)),
    spec['x-root-only'] && h('p', { class: 'quiet' }, 'Root only.'),
    spec.security?.length === 0 && h('p', { class: 'quiet' }, 'Needs no token.'),
    spec.description && h('p', {}, prose(spec.description)),
    showBody(api, spec),
    showTry(api, operation, session),
    h('h3', {}, 'Answers'),
    ...Object.entries(spec.responses).map(([status, response]) => showResponse(api, status, response)),
  );
}

function bodySchema(spec) {
  return spec.requestBody?.content['application/json'].schema;
}

function showBody(api, spec) {
  const schema = bodySchema(spec);
  return schema && h('section', {}, h('h3', {}, 'Body'), showSchema(api, schema));
}

function showResponse(api, status, given) {
  const name = /^#\/components\/responses\/(.+)$/.exec(given.$ref ?? '')?.[1];
  const response = name ? api.components.responses[name] : given;
  const [type, content] = Object.entries(response.content ?? {})[0] ?? [];
  const schema = content?.['x-data-schema'] ?? content?.schema;
  return h(
    'details',
    { open: status < '300' },
    h(
      'summary',
      {},
      h('span', { class: status < '400' ? 'good' : 'bad' }, status),
      ' ',
      prose(response.description),
      type && h('span', { class: 'quiet' }, ` ${type}`),
    ),
    status < '400' && schema && showSchema(api, schema, { answer: true }),
  );
}

function showTry(api, operation, session) {
  const { spec } = operation;
  const inputs = spec.parameters.map((parameter) => ({ parameter, input: inputFor(parameter) }));
  const schema = bodySchema(spec);
  const body =
    schema && h('textarea', { spellcheck: false, value: JSON.stringify(exampleOf(api, schema), null, 2) });
  const send = h('button', { type: 'submit', class: 'main' }, 'Send');
  const stop = h('button', { type: 'button', hidden: true }, 'Stop');
  const copy = h('button', { type: 'button' }, 'Copy as curl');
  const status = h('p', { role: 'status' });
  const shown = h('pre', { hidden: true, tabIndex: 0 });
  const read = () => readForm(operation, inputs, body);

  copy.addEventListener('click', async () => {
    const text = asCurl(operation.method, read());
    // The clipboard API exists only on https and on localhost.
    const copied = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    status.className = '';
    status.textContent = `${copied ? 'Copied' : 'Copy this'}. Put your token into SVC_TOKEN.`;
    shown.hidden = copied === true;
    shown.textContent = text;
  });
  const form = h(
    'form',
    {},
    h('h3', {}, 'Try it'),
    h('div', { class: 'fields' }, ...inputs.map(({ parameter, input }) => labelled(api, parameter, input))),
    body && h('label', { class: 'field' }, h('span', {}, 'Body'), body),
    h('div', { class: 'row' }, send, stop, copy),
    status,
    shown,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const gone = new AbortController();
    stop.onclick = () => gone.abort();
    send.disabled = true;
    stop.hidden = false;
    shown.hidden = false;
    shown.textContent = '';
    status.className = '';
    status.textContent = 'Sending…';
    try {
      const request = read();
      const started = performance.now();
      const response = await fetch(request.url, {
        method: operation.method,
        headers: { ...request.headers, ...session.headers(spec) },
        body: request.body,
        signal: gone.signal,
      });
      const ms = Math.round(performance.now() - started);
      status.className = response.ok ? 'good' : 'bad';
      const code = response.headers.get('x-error-code');
      status.textContent = [response.status, response.statusText, code, `${ms} ms`]
        .filter(Boolean)
        .join(' · ');
      await showAnswer(response, shown);
    } catch (error) {
      if (!gone.signal.aborted) {
        status.className = 'bad';
        status.textContent = String(error.message ?? error);
      }
    } finally {
      send.disabled = false;
      stop.hidden = true;
    }
  });
  return form;
}

function inputFor(parameter) {
  const { schema } = parameter;
  const choices = schema.enum ?? (schema.type === 'boolean' ? ['true', 'false'] : null);
  const required = parameter.required === true;
  if (!choices) return h('input', { required, spellcheck: false, autocomplete: 'off' });
  return h('select', { required }, ...['', ...choices].map((value) => h('option', { value }, value)));
}

function labelled(api, parameter, input) {
  return h(
    'label',
    { class: 'field' },
    h(
      'span',
      {},
      h('code', {}, parameter.name),
      h('span', { class: 'quiet' }, ` ${parameter.in}, ${typeText(api, parameter.schema)}`),
      parameter.required && h('span', { class: 'required' }, ' required'),
    ),
    parameter.description && h('span', { class: 'quiet' }, prose(parameter.description)),
    input,
  );
}

/** The request that the form describes. Throws if the body is not JSON. */
function readForm(operation, inputs, body) {
  const query = new URLSearchParams();
  const headers = {};
  let path = operation.path;
  for (const { parameter, input } of inputs) {
    if (input.value === '') continue;
    if (parameter.in === 'path') path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (parameter.in === 'query') query.set(parameter.name, input.value);
    else headers[parameter.name] = input.value;
  }
  const text = body?.value.trim() || undefined;
  if (text !== undefined) {
    JSON.parse(text);
    headers['content-type'] = 'application/json';
  }
  const search = query.toString();
  return { url: `${location.origin}${path}${search && `?${search}`}`, headers, body: text };
}

function asCurl(method, request) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  return [
    'curl -N',
    method === 'GET' ? '' : `-X ${method}`,
    '-H "Authorization: Bearer $SVC_TOKEN"',
    ...Object.entries(request.headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    request.body === undefined ? '' : `--data ${quote(request.body)}`,
    quote(request.url),
  ]
    .filter(Boolean)
    .join(' ');
}

/** Formats JSON and leaves other text unchanged. Shows only the end of a long response. */
async function showAnswer(response, shown) {
  if (response.headers.get('content-type')?.startsWith('application/json')) {
    shown.textContent = JSON.stringify(await response.json(), null, 2).slice(0, SHOWN_CHARS_MAX);
    return;
  }
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let next = await reader?.read(); next && !next.done; next = await reader.read()) {
    shown.textContent = (shown.textContent + next.value).slice(-SHOWN_CHARS_MAX);
    shown.scrollTop = shown.scrollHeight;
  }
}
