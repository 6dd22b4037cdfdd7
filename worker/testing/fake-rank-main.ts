/** Program of a rank without the native core. */
import { runFakeRank } from './fake-rank.js';

process.exit(await runFakeRank());
