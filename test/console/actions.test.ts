/** The table of actions has all of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '../../platform/process/root.js';
import { viewsOf } from './actions.js';

/** Actions that are no row, and the test that has them. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  Enable: 'admin-webhooks',
  'Grade the answer': 'reinforcement',
  Unpin: 'checkpoints',
  'Begin the sweep': 'sweeps',
  Leave: 'shares',
  'Open the shared run': 'shares',
  'Sign in by the link': 'sign-in',
  'Sign out everywhere': 'sign-in',
};

const web = join(projectRoot(), 'clients', 'console');
const sources = readdirSync(web, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.tsx') && !name.startsWith('build'))
  .map((name) => readFileSync(join(web, name), 'utf8'));

t.test('every button that acts is a row', async (t) => {
  const labels = sources.flatMap((source) =>
    [
      ...source.matchAll(
        /<(?:ActionButton|AskToReplace)\s[\s\S]*?label=("[^"]+"|\{[^}]+\})|<FormDialog\s[\s\S]*?submit=("[^"]+")/g,
      ),
    ]
      .map(([, label, submit]) => label ?? submit ?? '')
      .flatMap((text) => [...text.matchAll(/["']([^"']+)["']/g)].map(([, label = '']) => label)),
  );
  t.ok(labels.length > 20, 'they are found');
  const ids = { running: '', paused: '', failed: '', dataset: '', model: '', key: '', webhook: '' };
  const rows = viewsOf(ids).flatMap(({ actions }) => actions.map(({ button }) => button));
  for (const label of new Set(labels)) t.ok(rows.includes(label) || label in ELSEWHERE, label);
  for (const label of [...rows, ...Object.keys(ELSEWHERE)]) t.ok(labels.includes(label), `${label} exists`);
});
