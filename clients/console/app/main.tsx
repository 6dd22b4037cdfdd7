import { render } from 'preact';
import '../style/base.css';
import '../style/parts.css';
import '../style/layout.css';
import '../style/narrow.css';
import { App } from './app.js';

render(<App />, document.getElementById('console') as HTMLElement);
