import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { StreamThread } from './stream-thread.js';

const threadOf = () => new StreamThread(() => new URL('testing/streams.js', import.meta.url));

async function* bodyOf(...pieces: string[]) {
  for (const piece of pieces) yield Buffer.from(piece);
}
async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const piece of pieces) text += Buffer.from(piece).toString();
  return text;
}

t.test('streams are transformed, several at once, and again after the thread has ended', async (t) => {
  const thread = threadOf();
  for (let again = 0; again < 2; again++) {
    const all = await Promise.all(
      ['a', 'b', 'c'].map((name) => textOf(thread.transform(bodyOf(name, `${name}d`)))),
    );
    t.same(all, ['AAD', 'BBD', 'CCD']);
  }
  t.equal(await textOf(thread.transform(bodyOf())), '');
});

t.test('errors pass, and the body is left', async (t) => {
  const thread = threadOf();
  let left = 0;
  const body = async function* (...pieces: string[]) {
    try {
      yield* bodyOf(...pieces);
      throw new Error('of the body');
    } finally {
      left += 1;
    }
  };
  await t.rejects(textOf(thread.transform(body('refuse', 'a'))), {
    code: 'dataset_empty',
    message: 'refused',
  });
  await t.rejects(textOf(thread.transform(body('a'))), { message: 'of the body' });
  for await (const _ of thread.transform(body('a', 'b'))) break;
  t.equal(left, 3);
});

t.test('the body is read no faster than the result', async (t) => {
  let read = 0;
  const body = async function* () {
    for (; read < 10; read++) yield Buffer.from('a');
  };
  const pieces = threadOf().transform(body());
  await pieces.next();
  await sleep(50);
  t.equal(read, 0);
  await pieces.return(undefined);
});

t.test('the streams of a thread that ends fail, the next one has another thread', async (t) => {
  const thread = threadOf();
  const ended = { message: 'the thread of the stream has ended' };
  await t.rejects(textOf(thread.transform(bodyOf('exit'))), ended);
  t.equal(await textOf(thread.transform(bodyOf('a'))), 'A');
});
