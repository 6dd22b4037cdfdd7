import t from 'tap';
import type { PositionedDelta } from '../../contracts/index.js';
import { ReceivedAnswer } from './received-answer.js';

const delta = (text: string, textAt: number, logprob = -1): PositionedDelta => ({
  index: 0,
  text,
  text_at: textAt,
  logprobs: [...text].map((token) => ({ token, logprob, top: [] })),
  logprobs_at: textAt,
});

t.test('of a worker that takes over only the new part is returned', async (t) => {
  const answer = new ReceivedAnswer();
  const added = [delta('Once', 0), delta('On', 0), delta('ce upon', 2)].flatMap((some) =>
    answer.take([some]),
  );
  t.strictSame(
    added.map(({ text, logprobs }) => [text, logprobs.length]),
    [
      ['Once', 4],
      [' upon', 5],
    ],
  );
  t.match(answer.whole([{ index: 0, finish_reason: 'stop' }]), [
    { index: 0, text: 'Once upon', finish_reason: 'stop', logprobs: { length: 9 } },
  ]);
  t.equal(answer.numLogprobs, 9);
});

t.test('other text, or other bits of its tokens, are refused, unless nobody has seen them', async (t) => {
  for (const other of [delta('Twice', 0), delta('Once upon', 0, -1.5)]) {
    const answer = new ReceivedAnswer();
    answer.take([delta('Once', 0)]);
    t.throws(() => answer.take([other]), { code: 'rank_lost' });
    answer.clear();
    t.match(answer.take([other]), [{ text: other.text }]);
  }
});
