import { apiKey } from './client.js';
import { h, replace } from './dom.js';
import { datasetsView } from './view-datasets.js';
import { jobView } from './view-job.js';
import { jobsView } from './view-jobs.js';

/** Views by address; each receives the element to fill, a signal that ends it, and the match. */
const ROUTES = [
  { pattern: /^#\/jobs\/(job_\w+)$/, view: jobView },
  { pattern: /^#\/datasets$/, view: datasetsView },
  { pattern: /^/, view: jobsView },
];

const main = document.getElementById('view');
const forget = document.getElementById('forget');
let current = new AbortController();

async function show() {
  current.abort();
  current = new AbortController();
  const { signal } = current;
  forget.hidden = apiKey.get() === null;
  for (const link of document.querySelectorAll('nav a')) {
    link.toggleAttribute('aria-current', link.getAttribute('href') === (location.hash || '#/'));
  }
  if (apiKey.get() === null) {
    askForKey();
    return;
  }
  const route = ROUTES.find(({ pattern }) => pattern.test(location.hash));
  try {
    await route.view(main, signal, ...(route.pattern.exec(location.hash)?.slice(1) ?? []));
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) askForKey('This key is not accepted.');
    else replace(main, h('p', { class: 'notice error', role: 'alert' }, error.message));
  }
}

/** @param {string} [complaint] */
function askForKey(complaint) {
  const input = h('input', {
    id: 'key',
    type: 'password',
    autocomplete: 'off',
    placeholder: 'zf_…',
    required: true,
  });
  const enter = (event) => {
    event.preventDefault();
    apiKey.set(input.value.trim());
    show();
  };
  replace(
    main,
    h(
      'form',
      { class: 'card key-form', onsubmit: enter },
      h('h1', {}, 'API key'),
      h('p', { class: 'muted' }, 'The server prints its first key when it starts. It stays in this browser.'),
      h('label', { for: 'key' }, 'Key'),
      input,
      complaint && h('p', { class: 'notice error', role: 'alert' }, complaint),
      h('button', { type: 'submit', class: 'primary' }, 'Open'),
    ),
  );
  input.focus();
}

forget.addEventListener('click', () => {
  apiKey.forget();
  show();
});
addEventListener('hashchange', show);
show();
