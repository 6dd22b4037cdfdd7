import { get } from './client.js';
import { h, replace } from './dom.js';
import { ago, bytes, count } from './format.js';

/** The newest datasets. */
export async function datasetsView(main, signal) {
  const page = await get('v1/datasets?limit=100');
  if (signal.aborted) return;
  const head = ['Dataset', 'Format', 'Size', 'Documents', 'Tokens', 'Digest', 'Created'];
  replace(
    main,
    h('div', { class: 'title' }, h('h1', {}, 'Datasets')),
    page.data.length === 0
      ? h('div', { class: 'card empty' }, h('p', {}, 'No dataset yet.'))
      : h(
          'div',
          { class: 'card scroll' },
          h(
            'table',
            {},
            h('thead', {}, h('tr', {}, ...head.map((name) => h('th', { scope: 'col' }, name)))),
            h('tbody', {}, ...page.data.map(row)),
          ),
        ),
  );
}

function row(dataset) {
  return h(
    'tr',
    {},
    h('td', {}, dataset.name, h('div', { class: 'mono muted small' }, dataset.id)),
    h('td', {}, dataset.format),
    h('td', {}, bytes(dataset.bytes)),
    h('td', {}, documents(dataset)),
    h('td', {}, count(dataset.num_tokens)),
    h('td', { class: 'mono small' }, `${dataset.digest.slice(0, 23)}…`),
    h('td', { class: 'muted' }, ago(dataset.created_at)),
  );
}

/** Their number, and how many of them are chats and preferences. */
function documents({ num_documents, num_chats, num_preferences, num_labelled }) {
  const kinds = Object.entries({ chats: num_chats, pairs: num_preferences, labelled: num_labelled })
    .filter(([, number]) => number > 0)
    .map(([kind, number]) => `${count(number)} ${kind}`);
  return kinds.length === 0 ? count(num_documents) : `${count(num_documents)} (${kinds.join(', ')})`;
}
