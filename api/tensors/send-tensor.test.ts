import t from 'tap';
import { TensorAnswers } from './send-tensor.js';

t.test('a project reads four tensors at a time, and all projects sixteen', (t) => {
  const answers = new TensorAnswers();
  const ends = Array.from({ length: 4 }, () => answers.begin('a'));
  t.throws(() => answers.begin('a'), { code: 'rate_limited' });
  ends[0]?.();
  ends[0]?.();
  answers.begin('a');
  t.throws(() => answers.begin('a'), { code: 'rate_limited' }, 'an answer ends once');
  for (const project of ['b', 'c', 'd']) for (let i = 0; i < 4; i++) answers.begin(project);
  t.throws(() => answers.begin('e'), { code: 'rate_limited' });
  ends[1]?.();
  answers.begin('e');
  t.end();
});
