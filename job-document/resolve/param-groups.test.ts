import t from 'tap';
import { globMatches, groupOf } from './param-groups.js';

t.test('patterns of parameter names', async (t) => {
  const name = 'model.layers.10.mlp.up_proj.weight';
  for (const pattern of [
    name,
    '*',
    '*weight',
    'model.*',
    '*.10.*',
    'model.layers.1?.*',
    '*.mlp.*.weight',
    '**',
  ])
    t.ok(globMatches(pattern, name), pattern);
  for (const pattern of ['', 'model', 'model.layers.?.*', '*bias', 'Model.*', 'weight', '?', `${name}?`])
    t.notOk(globMatches(pattern, name), pattern);
  t.ok(globMatches('*', ''));
  t.notOk(globMatches('?', ''));
  t.notOk(globMatches(`${'a*'.repeat(100)}b`, 'a'.repeat(256)), 'in a reasonable time');
});

t.test('the first matching entry applies', async (t) => {
  const groups = [
    { match: 'model.layers.0.*', lr: 0.1, weight_decay: null, frozen: false },
    { match: '*norm*', lr: null, weight_decay: 0.5, frozen: false },
  ];
  t.equal(groupOf(groups, 'model.layers.0.input_layernorm.weight')?.lr, 0.1);
  t.equal(groupOf(groups, 'model.layers.1.input_layernorm.weight')?.weight_decay, 0.5);
  t.equal(groupOf(groups, 'lm_head.weight'), undefined);
});
