import t from 'tap';
import { axisOf } from './parallel.js';

t.test('numbers lie on a line, far ones by their logarithm', async (t) => {
  t.same(axisOf('steps', [10, 20, 15, null]), {
    name: 'steps',
    ticks: [
      { at: 0, label: '10' },
      { at: 1, label: '20' },
      { at: 0.5, label: '15' },
    ],
    positions: [0, 1, 0.5, null],
  });
  const { positions, ticks } = axisOf('lr', [1e-5, 1e-3, 1e-4, 2e-4, 3e-4, 4e-4]);
  t.ok(Math.abs((positions[2] ?? 0) - 0.5) < 1e-9);
  t.same(
    ticks.map(({ label }) => label),
    ['0.00001', '0.001'],
    'many values have ticks at the ends only',
  );
  t.same(axisOf('same', [3, 3]).positions, [0.5, 0.5]);
});

t.test('words have a place each', async (t) => {
  t.same(axisOf('type', ['lamb', 'adamw', undefined, true]).positions, [0.5, 0, null, 1]);
  t.same(axisOf('none', [null]).ticks, []);
  t.same(axisOf('template', ['{% for message in messages %}']).ticks, [
    { at: 0.5, label: '{% for message …' },
  ]);
});
