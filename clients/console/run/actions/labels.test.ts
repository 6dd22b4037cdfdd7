import t from 'tap';
import { labelsIn, labelsPatch, labelsText } from './labels.js';
import { USES } from './use-commands.js';

t.test('labels are lines', async (t) => {
  const labels = { team: 'docs', run: 'a=b', empty: '' };
  t.same(labelsIn(labelsText(labels)), labels);
  t.same(labelsIn('\n a \n'), { a: '' });
  t.same(labelsPatch({ team: 'docs', old: 'x' }, { team: 'code' }), { team: 'code', old: null });
  t.same(labelsPatch({ constructor: 'x' }, {}), { constructor: null });
});

t.test('every use of a model names it', async (t) => {
  for (const [name, textOf] of Object.entries(USES))
    for (const isChat of [true, false])
      t.match(
        textOf({ baseUrl: 'http://a', checkpoint_id: 'ckpt_1', fine_tuned: 'ft:a:default::ckpt_1', isChat }),
        /ckpt_1/,
        name,
      );
});
