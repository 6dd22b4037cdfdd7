import { CONFIG_KEYS } from '../../job-document/deepspeed/config-keys.js';
import type { Key, Keys } from '../../job-document/deepspeed/key.js';
import { OPTIMIZERS, REFUSED_OPTIMIZERS } from '../../job-document/deepspeed/optimizer-keys.js';
import { REFUSED_SCHEDULERS, SCHEDULERS } from '../../job-document/deepspeed/scheduler-keys.js';

interface Row {
  keys: string[];
  meaning: string;
  kind: 'mapped' | 'holds' | 'ignored' | 'limited';
}

const code = (text: unknown) => `\`${typeof text === 'string' ? text : JSON.stringify(text)}\``;
const sentence = (text: string) => text.replaceAll('|', '\\|');

function rowOf(name: string, key: Exclude<Key, { kind: 'section' }>): Row {
  switch (key.kind) {
    case 'mapped':
      return { keys: [name], meaning: sentence(key.to), kind: 'mapped' };
    case 'holds':
    case 'ignored':
      return { keys: [name], meaning: sentence(key.why), kind: key.kind };
    case 'only': {
      const values = key.values.length === 0 ? 'absent or `null`' : key.values.map(code).join(' or ');
      return { keys: [name], meaning: `only ${values}: ${sentence(key.why)}`, kind: 'limited' };
    }
    case 'off':
      return { keys: [name], meaning: `only switched off: ${sentence(key.why)}`, kind: 'limited' };
    case 'refused':
      return { keys: [name], meaning: `refused: ${sentence(key.why)}`, kind: 'limited' };
  }
}

function rowsOf(keys: Keys, at = ''): Row[] {
  return Object.entries(keys).flatMap(([name, key]) =>
    key.kind === 'section' ? rowsOf(key.keys, `${at}${name}.`) : [rowOf(at + name, key)],
  );
}

/** Keys or types with one meaning share a row. */
function joined<R extends Pick<Row, 'keys' | 'meaning'>>(rows: readonly R[]): R[] {
  const byMeaning = new Map<string, R>();
  for (const row of rows) {
    const same = byMeaning.get(row.meaning);
    if (same) same.keys.push(...row.keys);
    else byMeaning.set(row.meaning, { ...row, keys: [...row.keys] });
  }
  return [...byMeaning.values()];
}

function linesOf(rows: readonly Pick<Row, 'keys' | 'meaning'>[]): string[] {
  return joined(rows).map(({ keys, meaning }) => `| ${keys.map(code).join(', ')} | ${meaning} |`);
}

function table(title: string, head: string, rows: readonly Row[]): string {
  return [`${title}\n`, `| key | ${head} |`, '|---|---|', ...linesOf(rows)].join('\n');
}

/** Parameters specific to one optimizer or scheduler, with their defaults. */
function typeRows(params: Keys, defaults: Readonly<Record<string, unknown>>): string {
  return Object.entries(params)
    .flatMap(([name, key]) => (key.kind === 'mapped' ? [name] : []))
    .map((name) => (name in defaults ? `${code(name)} (${JSON.stringify(defaults[name])})` : code(name)))
    .join(', ');
}

const titled = { adam: 'Adam', adamw: 'AdamW', lamb: 'Lamb', lion: 'Lion', adagrad: 'Adagrad', sgd: 'SGD' };

/** Treatment of every key as Markdown, from the import's own tables. */
export function renderDeepspeedTables(): string {
  const top = rowsOf(CONFIG_KEYS);
  const params = joined(
    [...Object.values(OPTIMIZERS), ...Object.values(SCHEDULERS)].flatMap(({ params: keys }) => rowsOf(keys)),
  ).map((row) => ({ ...row, keys: [...new Set(row.keys)] }));
  const rowsOfKind = (rows: readonly Row[], kind: Row['kind']) => rows.filter((row) => row.kind === kind);
  const optimizers = Object.entries(OPTIMIZERS).map(([name, { type, params: keys, defaults }]) => ({
    keys: [titled[name as keyof typeof titled] ?? name],
    meaning: `${code(type)} | ${typeRows(keys, defaults)}`,
  }));
  const schedulers = Object.entries(SCHEDULERS).map(([name, { type, params: keys, defaults }]) => ({
    keys: [name],
    meaning: `${code(type)} | ${typeRows(keys, defaults)}`,
  }));
  const refusals = Object.entries({ ...REFUSED_OPTIMIZERS, ...REFUSED_SCHEDULERS }).map(([name, why]) => ({
    keys: [name],
    meaning: sentence(why),
  }));
  const head = '| type | here | parameters (default) |\n|---|---|---|';
  return [
    table('### Keys that become fields', 'field', rowsOfKind(top, 'mapped')),
    ['### Optimizers\n', head, ...linesOf(optimizers)].join('\n'),
    ['### Schedulers\n', head, ...linesOf(schedulers)].join('\n'),
    table(
      '### Parameters of optimizers and schedulers that become fields',
      'field',
      rowsOfKind(params, 'mapped'),
    ),
    table('### Keys that hold by construction', 'why', [
      ...rowsOfKind(top, 'holds'),
      ...rowsOfKind(params, 'holds'),
    ]),
    table('### Keys without effect, named in `warnings`', 'why', [
      ...rowsOfKind(top, 'ignored'),
      ...rowsOfKind(params, 'ignored'),
    ]),
    table('### Keys that are limited or refused', 'accepted, and what to do', [
      ...rowsOfKind(top, 'limited'),
      ...rowsOfKind(params, 'limited'),
    ]),
    ['### Refused types\n', '| type | what to do |', '|---|---|', ...linesOf(refusals)].join('\n'),
  ].join('\n\n');
}
