/** Main module of the thread that unpacks zstd. */
import { serveStreams } from '../../../platform/threads/serve-streams.js';
import { unzstd } from './zstd.js';

serveStreams(unzstd);
