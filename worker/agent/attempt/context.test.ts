import t from 'tap';
import { usableCores } from '../../../platform/process/usable-cores.js';
import { threadsOfAnswers } from './context.js';

t.test('answers take the threads of a single rank: all cores, unless a number is set', async (t) => {
  t.equal(threadsOfAnswers({ threads_per_rank: null, answer_gpus: null }), usableCores());
  t.equal(threadsOfAnswers({ threads_per_rank: usableCores() + 1, answer_gpus: null }), usableCores() + 1);
});
