import t from 'tap';
import { fitOverrides, type Overrides, overridesBefore } from './overrides.js';

const A: Overrides = [{ step: 0, lr: 0.1 }];

t.test('overrides of completed steps stay, differing ones apply from the next step on', async (t) => {
  const cases: [string, Overrides, Overrides, number, Overrides][] = [
    ['no change', A, A, 5, A],
    ['a future change', [...A, { step: 9, lr: 1 }], A, 5, [...A, { step: 9, lr: 1 }]],
    ['a change at the next step', [...A, { step: 5, lr: 1 }], A, 5, [...A, { step: 5, lr: 1 }]],
    ['a late change', [...A, { step: 3, lr: 1 }], A, 5, [...A, { step: 5, lr: 1 }]],
    [
      'two late changes: the last one applies',
      [
        { step: 1, lr: 1 },
        { step: 3, lr: 2 },
      ],
      [],
      5,
      [{ step: 5, lr: 2 }],
    ],
    [
      'a late change limited to a step',
      [
        { step: 1, lr: 1 },
        { step: 3, lr: null },
      ],
      [],
      5,
      [],
    ],
    [
      'a late removal',
      [],
      [{ step: 3, lr: 1 }],
      5,
      [
        { step: 3, lr: 1 },
        { step: 5, lr: null },
      ],
    ],
    [
      'late, but the next step has a value',
      [
        { step: 3, lr: 1 },
        { step: 5, lr: 2 },
      ],
      [],
      5,
      [{ step: 5, lr: 2 }],
    ],
    [
      'one setting late, the other with the next step',
      [
        { step: 3, lr: 0 },
        { step: 5, loss_scale: 8 },
        { step: 7, lr: null },
      ],
      [],
      5,
      [
        { step: 5, lr: 0, loss_scale: 8 },
        { step: 7, lr: null },
      ],
    ],
    [
      'rates of groups, each by itself',
      [
        { step: 1, lr: 1, group_lr: { a: 2, b: 3 } },
        { step: 5, group_lr: { b: 4 } },
      ],
      [{ step: 1, lr: 1, group_lr: { c: 5 } }],
      5,
      [
        { step: 1, lr: 1, group_lr: { c: 5 } },
        { step: 5, group_lr: { a: 2, b: 4, c: null } },
      ],
    ],
  ];
  for (const [name, wanted, past, step, expected] of cases) {
    const fitted = fitOverrides(wanted, past, step);
    t.strictSame(fitted, expected, name);
    t.strictSame(overridesBefore(fitted, step), past, `${name}: the past`);
    t.strictSame(fitOverrides(fitted, past, step), fitted, `${name}: again`);
  }
});
