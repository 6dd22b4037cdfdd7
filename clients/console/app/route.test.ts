import t from 'tap';
import { linkTo, parseRoute } from './route.js';

t.test('an address names a view and its settings', async (t) => {
  const { path, query } = parseRoute('#/runs/job_1?tab=logs&run=a&run=b');
  t.same(path, ['runs', 'job_1']);
  t.equal(query.get('tab'), 'logs');
  t.same(query.getAll('run'), ['a', 'b']);
  for (const none of ['', '#', '#/']) t.same(parseRoute(none).path, []);
  t.same(parseRoute('#/runs/100%').path, ['runs', '100%']);
});

t.test('a link leads where it was made for', async (t) => {
  const link = linkTo(['runs', 'a/b ?c'], { text: 'x & y', run: ['1', '2'], none: '', missing: undefined });
  const { path, query } = parseRoute(link);
  t.same(path, ['runs', 'a/b ?c']);
  t.same(
    [...query],
    [
      ['text', 'x & y'],
      ['run', '1'],
      ['run', '2'],
    ],
  );
  t.equal(linkTo(['runs']), '#/runs');
});
