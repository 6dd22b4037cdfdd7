import { get } from './client.js';
import { errorNotice, h, progressBar, replace, stateBadge } from './dom.js';
import { ago, compact, count, loss } from './format.js';

const REFRESH_MS = 2500;
const PAGE_SIZE = 50;

/** The newest jobs, kept fresh while the page is looked at. */
export async function jobsView(main, signal) {
  const list = h('div');
  replace(main, h('div', { class: 'title' }, h('h1', {}, 'Jobs')), list);
  await refresh(list, signal);
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible')
      refresh(list, signal).catch((error) => showError(list, error));
  }, REFRESH_MS);
  signal.addEventListener('abort', () => clearInterval(timer));
}

async function refresh(list, signal) {
  const page = await get(`v1/jobs?limit=${PAGE_SIZE}`);
  if (signal.aborted) return;
  replace(list, page.data.length === 0 ? empty() : table(page.data));
}

function showError(list, error) {
  list.querySelector('.notice')?.remove();
  list.prepend(errorNotice(error));
}

function empty() {
  return h(
    'div',
    { class: 'card empty' },
    h('p', {}, 'No job yet.'),
    h(
      'p',
      { class: 'muted' },
      'Upload a dataset and POST a job to /v1/jobs, or run ',
      h('code', {}, 'npm run quickstart'),
      '.',
    ),
  );
}

function table(jobs) {
  const head = ['Job', 'State', 'Progress', 'Loss', 'Tokens/s', 'Ranks', 'Created'];
  return h(
    'div',
    { class: 'card scroll' },
    h(
      'table',
      { class: 'jobs' },
      h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, ...jobs.map(row)),
    ),
  );
}

function row(job) {
  const { progress } = job;
  return h(
    'tr',
    {},
    h(
      'td',
      {},
      h('a', { href: `#/jobs/${job.id}`, class: 'name' }, job.name || 'unnamed'),
      h('div', { class: 'mono muted small' }, job.id),
    ),
    h('td', {}, stateBadge(job.state)),
    h(
      'td',
      { class: 'progress-cell' },
      progressBar(progress.percent, `progress of ${job.name || job.id}`),
      h('div', { class: 'muted small' }, `${count(progress.step)} of ${count(progress.total_steps)} steps`),
    ),
    h('td', {}, loss(progress.loss)),
    h('td', {}, job.world_size === null ? '–' : compact(progress.tokens_per_second)),
    h('td', {}, String(job.world_size ?? '–')),
    h('td', { class: 'muted' }, ago(job.created_at)),
  );
}
