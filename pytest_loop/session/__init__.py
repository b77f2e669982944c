"""One pytest session that judges: started, run and recorded."""
