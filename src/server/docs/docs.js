/**
 * Renders the API description. The description is embedded in the page if the page was requested with a token;
 * otherwise the page asks for one. The token is kept in this page's memory only and sent to this origin only.
 */
import { h, prose } from './dom.js';
import { showOperation } from './operation.js';

const content = document.getElementById('content');
const account = document.getElementById('account');
const signIn = document.getElementById('sign-in');
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

const session = {
  token: null,
  /** Whether this page created the token. Signing out revokes such a token; a pasted one is only forgotten. */
  ours: false,
  headers(spec) {
    return this.token && spec.security?.length !== 0 ? { authorization: `Bearer ${this.token}` } : {};
  },
};

document.getElementById('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const now = root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  root.dataset.theme = now === 'dark' ? 'light' : 'dark';
});

signIn.addEventListener('click', () => showSignIn());

account.addEventListener('submit', async (event) => {
  event.preventDefault();
  const headers = session.headers({});
  session.token = null;
  showSignIn();
  if (session.ours) await fetch('/api/logout', { method: 'POST', headers }).catch(() => {});
});

const embedded = document.getElementById('description');
if (embedded) showApi(JSON.parse(embedded.textContent));
else showSignIn();

function showSignIn() {
  account.hidden = true;
  signIn.hidden = true;
  const username = h('input', { autocomplete: 'username', spellcheck: false });
  const password = h('input', { type: 'password', autocomplete: 'current-password' });
  const token = h('input', { type: 'password', autocomplete: 'off' });
  const error = h('p', { class: 'bad', role: 'alert' });
  const field = (text, input) => h('label', { class: 'field' }, h('span', {}, text), input);
  const form = h(
    'form',
    {},
    field('Username', username),
    field('Password', password),
    h('span', { class: 'quiet' }, 'or'),
    field('API token', token),
    h('button', { type: 'submit', class: 'main' }, 'Sign in'),
    error,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    error.textContent = '';
    try {
      const pasted = token.value.trim();
      await showWithToken(pasted || (await login(username.value, password.value)), pasted === '');
    } catch (problem) {
      error.textContent = problem.message;
    }
  });
  content.replaceChildren(
    h(
      'section',
      { class: 'sign-in' },
      h('h2', {}, 'Sign in'),
      h(
        'p',
        { class: 'quiet' },
        'The description needs a token, as every endpoint does. It is forgotten with this page.',
      ),
      form,
    ),
  );
  username.focus();
}

async function login(username, password) {
  const { token } = await ask('/api/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password }),
  });
  return token;
}

async function showWithToken(token, ours) {
  const headers = { authorization: `Bearer ${token}` };
  const me = await ask('/api/me', { headers });
  const api = await ask('/api/openapi.json', { headers });
  session.token = token;
  session.ours = ours;
  account.hidden = false;
  document.getElementById('who').textContent = me.username;
  account.querySelector('button').textContent = ours ? 'Sign out' : 'Forget token';
  showApi(api);
}

async function ask(path, init) {
  const response = await fetch(path, init);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function showApi(api) {
  signIn.hidden = session.token !== null;
  document.getElementById('version').textContent = api.info.version;
  const operations = operationsOf(api);
  const article = h('div');
  const filter = h('input', {
    type: 'search',
    placeholder: 'Find an endpoint',
    'aria-label': 'Find an endpoint',
  });
  const groups = api.tags.map(({ name }) =>
    group(
      name,
      operations.filter(({ spec }) => spec.tags[0] === name),
    ),
  );
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase();
    for (const { element, links } of groups) {
      for (const { link, text } of links) link.parentElement.hidden = !text.includes(words);
      element.hidden = links.every(({ link }) => link.parentElement.hidden);
    }
  });

  const open = () => {
    const chosen = operations.find(({ id }) => `#${id}` === location.hash);
    for (const { links } of groups) {
      for (const { link } of links) {
        if (link.hash === location.hash) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
      }
    }
    article.replaceChildren(chosen ? showOperation(api, chosen, session) : introduction(api));
    if (chosen) article.querySelector('h2').focus();
  };
  window.onhashchange = open;
  const nav = h('nav', { 'aria-label': 'Endpoints' }, filter, ...groups.map(({ element }) => element));
  content.replaceChildren(h('div', { class: 'columns' }, nav, article));
  open();
}

/** All operations, with their parameters instead of references to them. */
function operationsOf(api) {
  const parameter = (given) => (given.$ref ? api.components.parameters[given.$ref.split('/').at(-1)] : given);
  return Object.entries(api.paths).flatMap(([path, methods]) =>
    METHODS.filter((name) => methods[name]).map((name) => ({
      id: methods[name].operationId,
      method: name.toUpperCase(),
      path,
      spec: { ...methods[name], parameters: methods[name].parameters.map(parameter) },
    })),
  );
}

function group(name, operations) {
  const links = operations.map(({ id, method, path, spec }) => ({
    text: `${id} ${method} ${path} ${spec.summary}`.toLowerCase(),
    link: h('a', { href: `#${id}` }, spec.summary, h('span', { class: 'path' }, `${method} ${path}`)),
  }));
  const list = h('ul', {}, ...links.map(({ link }) => h('li', {}, link)));
  return { element: h('section', {}, h('h3', {}, name), list), links };
}

function introduction(api) {
  const paragraphs = api.info.description.split('\n').filter((line) => line !== '');
  return h(
    'article',
    {},
    h('h2', {}, 'How to read this'),
    ...paragraphs.map((line) => h('p', {}, prose(line))),
    !session.token && h('p', { class: 'quiet' }, 'Sign in to call endpoints from here.'),
  );
}
