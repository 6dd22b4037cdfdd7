import { h, replace } from './dom.js';
import { clock } from './format.js';

/** Lines that the page keeps; the API has more. */
const LINES_SHOWN = 1000;

/** Log lines of a job's ranks, the newest at the bottom; it stays in sight unless the user has scrolled away from it. */
export class LogPane {
  #lines = [];
  #ranks = new Set();
  #list = h('ol', { class: 'log', tabindex: 0, 'aria-label': 'log lines' });
  #choice = h(
    'select',
    { 'aria-label': 'lines of', onchange: () => this.#draw() },
    h('option', { value: '' }, 'all ranks'),
  );

  /** @param {HTMLElement} element */
  constructor(element) {
    replace(element, h('div', { class: 'log-head' }, h('h2', {}, 'Log'), this.#choice), this.#list);
    this.#draw();
  }

  /** @param {object[]} lines entries of the stream of kind `log` */
  add(lines) {
    if (lines.length === 0) return;
    this.#lines = [...this.#lines, ...lines].slice(-LINES_SHOWN);
    for (const { rank } of lines) this.#know(rank);
    this.#draw();
  }

  #know(rank) {
    if (rank === null || this.#ranks.has(rank)) return;
    this.#ranks.add(rank);
    const after = [...this.#choice.options].find(({ value }) => value !== '' && Number(value) > rank);
    this.#choice.insertBefore(h('option', { value: rank }, `rank ${rank}`), after ?? null);
  }

  #draw() {
    const list = this.#list;
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const { value } = this.#choice;
    const shown = this.#lines.filter(({ rank }) => value === '' || rank === Number(value));
    const none = h('li', { class: 'muted' }, 'Nothing has been written yet.');
    replace(list, ...(shown.length === 0 ? [none] : shown.map(lineRow)));
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  }
}

function lineRow({ at, rank, stream, message }) {
  return h(
    'li',
    { class: stream },
    h('time', { datetime: at, class: 'muted' }, clock(at)),
    h('span', { class: 'muted who' }, rank === null ? 'job' : `rank ${rank}`),
    h('span', {}, message),
  );
}
