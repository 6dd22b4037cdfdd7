/** Transformation of the tests of stream threads. */
import { ZerofleetError } from '../../../contracts/index.js';
import { serveStreams } from '../serve-streams.js';

serveStreams(async function* (body) {
  for await (const piece of body) {
    const text = Buffer.from(piece).toString();
    if (text === 'refuse') throw new ZerofleetError('dataset_empty', 'refused');
    if (text === 'exit') process.exit(3);
    yield Buffer.from(text.toUpperCase());
  }
});
