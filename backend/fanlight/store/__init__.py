from fanlight.store import tables_trials as tables_trials  # whoever asks for the tables gets all of them
