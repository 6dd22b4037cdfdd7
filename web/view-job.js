import { LossChart } from './chart.js';
import { ApiError, follow, get, post } from './client.js';
import { errorNotice, h, progressBar, replace, stateBadge } from './dom.js';
import { ago, bytes, clock, compact, count, duration, loss, ranks as ranksText } from './format.js';
import { LogPane } from './logs.js';

const FINAL = ['cancelled', 'succeeded', 'failed'];
const EVENTS_SHOWN = 200;

/** One job, live: its record is read again whenever the stream says that something happened. */
export async function jobView(main, signal, jobId) {
  const path = `v1/jobs/${jobId}`;
  const parts = {
    head: h('div'),
    figures: h('div', { class: 'figures' }),
    chart: h('div', { class: 'chart' }),
    proof: h('div'),
    checkpoints: h('div'),
    events: h('ol', { class: 'events' }),
    log: h('section', { class: 'card' }),
    spec: h('div'),
  };
  const job = await get(path);
  if (signal.aborted) return;
  replace(main, ...layout(parts));

  const chart = new LossChart(parts.chart, signal);
  const log = new LogPane(parts.log);
  const events = [];
  let isLive = false;
  const reload = oneAtATime(async () => {
    const [fresh, checkpoints] = await Promise.all([get(path), get(`${path}/checkpoints`)]);
    if (signal.aborted) return;
    chart.setTotalSteps(fresh.progress.total_steps);
    show(parts, fresh, { isLive, reload });
    showCheckpoints(parts.checkpoints, checkpoints.data);
  });
  show(parts, job, { isLive, reload });
  await reload();

  await follow(`${path}/stream`, {
    signal,
    onLive: (live) => {
      isLive = live;
      reload();
    },
    onMessages: (messages) => {
      // The server has lost what happened before; what it knows now follows.
      if (messages.some(({ event }) => event === 'reset')) events.length = 0;
      chart.add(messages.filter(({ event }) => event === 'metric').map(({ data }) => data));
      log.add(messages.filter(({ event }) => event === 'log').map(({ data }) => data));
      for (const { data } of messages.filter(({ event }) => event === 'event')) {
        events.unshift(data);
        if (data.type === 'checkpoint.committed' && Number.isInteger(data.data.step))
          chart.addCheckpoint(data.data.step);
      }
      replace(parts.events, ...events.slice(0, EVENTS_SHOWN).map(eventRow));
      if (messages.some(({ event }) => event === 'end')) isLive = false;
      reload();
    },
  });
}

/** Runs a task again after it has ended when it was asked for meanwhile, and never twice at once. */
function oneAtATime(task) {
  let running = null;
  let again = false;
  const run = async () => {
    do {
      again = false;
      // The stream makes the connection again; a record that cannot be read now is read then.
      await task().catch(() => undefined);
    } while (again);
    running = null;
  };
  return () => {
    if (running !== null) again = true;
    else running = run();
    return running;
  };
}

function layout(parts) {
  return [
    parts.head,
    h('section', { class: 'card' }, h('h2', {}, 'Loss'), parts.figures, parts.chart),
    parts.proof,
    h(
      'div',
      { class: 'columns' },
      h('section', { class: 'card' }, h('h2', {}, 'Checkpoints'), parts.checkpoints),
      h('section', { class: 'card' }, h('h2', {}, 'Events'), parts.events),
    ),
    parts.log,
    parts.spec,
  ];
}

function show(parts, job, context) {
  replace(parts.head, head(job, context));
  replace(parts.figures, ...figures(job));
  replace(parts.proof, proof(job));
  if (parts.spec.childElementCount === 0) replace(parts.spec, spec(job));
}

function head(job, { isLive, reload }) {
  return h(
    'div',
    {},
    h(
      'div',
      { class: 'title' },
      h('h1', {}, job.name || 'unnamed'),
      stateBadge(job.state),
      job.reason && h('span', { class: 'muted' }, job.reason.replaceAll('_', ' ')),
      isLive && h('span', { class: 'live' }, 'live'),
      h('span', { class: 'spring' }),
      ...actions(job, reload),
    ),
    h('p', { class: 'mono muted small' }, job.id),
    job.failure && h('p', { class: 'notice error' }, `${job.failure.code}: ${job.failure.message}`),
    progressBar(job.progress.percent, 'progress'),
  );
}

/** The buttons that make sense in the job's state. */
function actions(job, reload) {
  if (FINAL.includes(job.state)) return [];
  const act = (action, body) => async (event) => {
    event.target.disabled = true;
    await post(`v1/jobs/${job.id}/${action}`, body?.()).catch((error) => {
      if (!(error instanceof ApiError)) throw error;
      event.target.closest('.title').after(errorNotice(error));
    });
    await reload();
  };
  const cancel = h('button', { type: 'button', class: 'danger', onclick: act('cancel') }, 'Cancel');
  if (job.state === 'cancelling' || job.state === 'pausing') return job.state === 'pausing' ? [cancel] : [];
  if (job.state !== 'paused')
    return [h('button', { type: 'button', onclick: act('pause') }, 'Pause'), cancel];

  const { min, max } = job.spec.resources.ranks;
  const step = job.spec.zero.expert_parallel_size;
  const choices = Array.from(
    { length: Math.floor((max - min) / step) + 1 },
    (_, index) => min + index * step,
  );
  const ranks = h(
    'select',
    { 'aria-label': 'ranks' },
    ...choices.map((n) => h('option', { value: n, selected: n === job.requested_ranks }, ranksText(n))),
  );
  const resume = act('resume', () => ({ ranks: Number(ranks.value) }));
  return [ranks, h('button', { type: 'button', class: 'primary', onclick: resume }, 'Resume'), cancel];
}

function figures({ progress, world_size: worldSize, state }) {
  const isTraining = worldSize !== null;
  const pairs = [
    ['Step', `${count(progress.step)} / ${count(progress.total_steps)}`],
    ['Loss', loss(progress.loss)],
    ['Tokens', compact(progress.tokens)],
    ['Tokens/s', isTraining ? compact(progress.tokens_per_second) : '–'],
    ['Ranks', String(worldSize ?? '–')],
    ['Time left', isTraining && !FINAL.includes(state) ? duration(progress.eta_seconds) : '–'],
  ];
  return pairs.map(([name, value]) =>
    h(
      'div',
      { class: 'figure' },
      h('div', { class: 'muted small' }, name),
      h('div', { class: 'value' }, value),
    ),
  );
}

/** The digest: two jobs, or two ways through one job, are the same training exactly when it is equal. */
function proof(job) {
  const digest = job.export?.state_digest ?? job.latest_checkpoint?.state_digest;
  if (digest === undefined) return null;
  const what =
    job.export === null
      ? `State digest at step ${count(job.latest_checkpoint.step)}`
      : `Digest of the exported step ${count(job.export.step)}`;
  return h(
    'section',
    { class: 'card proof' },
    h(
      'div',
      {},
      h('h2', {}, what),
      h('p', { class: 'muted small' }, 'Equal digests prove equal training, on any number of ranks.'),
    ),
    h('code', { class: 'digest' }, digest),
    job.export && exportFiles(job.export),
  );
}

function exportFiles({ prefix, files }) {
  return h(
    'div',
    { class: 'files' },
    h('p', { class: 'mono small muted' }, prefix),
    ...files.map((file) => h('span', { class: 'file' }, `${file.name} · ${bytes(file.bytes)}`)),
  );
}

function showCheckpoints(element, checkpoints) {
  if (checkpoints.length === 0) {
    replace(element, h('p', { class: 'muted' }, 'None is committed yet.'));
    return;
  }
  const head = ['Step', 'Ranks', 'Size', 'Digest', 'Eval losses', 'Committed'];
  const row = (checkpoint) =>
    h(
      'tr',
      {},
      h('td', {}, count(checkpoint.step)),
      h('td', {}, String(checkpoint.world_size)),
      h('td', {}, bytes(checkpoint.bytes)),
      h(
        'td',
        { class: 'mono small', title: checkpoint.state_digest },
        `${checkpoint.state_digest.slice(0, 12)}…`,
      ),
      h('td', {}, losses(checkpoint.eval_losses)),
      h('td', { class: 'muted' }, ago(checkpoint.committed_at)),
    );
  replace(
    element,
    h(
      'div',
      { class: 'scroll' },
      h(
        'table',
        {},
        h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
        h('tbody', {}, ...checkpoints.map(row)),
      ),
    ),
  );
}

function losses(values = {}) {
  return join(...Object.entries(values).map(([name, value]) => `${name} ${value.toFixed(4)}`));
}

/** Shown fields of an event, by type. Types that are not listed show all their plain values. */
const EVENT_DETAILS = {
  'job.created': () => '',
  'job.state': ({ from, to, reason }) => join(from ? `${from} → ${to}` : to, reason?.replaceAll('_', ' ')),
  'data.preparing': ({ done_bytes: done, total_bytes: total }) => `${bytes(done)} of ${bytes(total)}`,
  'data.prepared': ({ documents, tokens, targets, sequences }) =>
    join(
      `${count(documents)} documents`,
      `${count(tokens)} tokens, ${count(targets)} of them learned`,
      `${count(sequences)} sequences`,
    ),
  'checkpoint.committed': ({ step, world_size: ranks, bytes: size }) =>
    join(`step ${count(step)}`, ranksText(ranks), bytes(size)),
};

function eventRow({ type, at, data }) {
  const details = (EVENT_DETAILS[type] ?? plainValues)(data);
  const isBad = /\b(lost|failed|fallback)$/.test(type) || data.to === 'failed';
  return h(
    'li',
    { class: isBad && 'bad' },
    h('time', { datetime: at, class: 'muted' }, clock(at)),
    h('div', {}, h('strong', {}, type), details && h('div', { class: 'muted small' }, details)),
  );
}

function plainValues(data) {
  const plain = Object.entries(data).filter(([, value]) => value !== null && typeof value !== 'object');
  return join(...plain.map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`));
}

function join(...parts) {
  return parts.filter((part) => part !== null && part !== undefined && part !== '').join(' · ');
}

function spec(job) {
  return h(
    'details',
    { class: 'card' },
    h('summary', {}, 'Resolved job document'),
    h('pre', {}, JSON.stringify(job.spec, null, 2)),
  );
}
